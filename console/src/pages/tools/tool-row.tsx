import { useState } from "react";
import type { OfferedTool } from "../../data/tools.ts";
import { Json } from "../../ui/json.tsx";
import { ToolTrial } from "./tool-trial.tsx";

const POLICIES: Readonly<Record<OfferedTool["policy"], { text: string; color: string }>> = {
  run: { text: "runs freely", color: "text-good" },
  ask: { text: "needs approval", color: "text-warn" },
  deny: { text: "denied", color: "text-bad" },
};

const effectOf = ({ read_only, destructive, idempotent }: OfferedTool): string =>
  read_only ? "read-only" : destructive ? "destructive" : idempotent ? "writes, idempotent" : "writes";

/** A tool. Expanded, it shows its arguments and, if read-only, a form to try it. */
export function ToolRow({ tool }: { tool: OfferedTool }) {
  const [isOpen, setOpen] = useState(false);
  const { text, color } = POLICIES[tool.policy];
  return (
    <li data-testid="tool" data-tool={tool.name}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="grid w-full grid-cols-[auto_1fr] gap-x-2 px-3.5 py-2 text-left hover:bg-sunken"
      >
        <span aria-hidden className={`text-muted ${isOpen ? "rotate-90" : ""}`}>
          ›
        </span>
        <span className="flex min-w-0 flex-wrap items-baseline gap-x-3">
          <span className="font-medium wrap-anywhere">{tool.name}</span>
          <span className={`text-[12px] font-medium ${color}`}>{text}</span>
          <span className="text-[12px] text-muted">{effectOf(tool)}</span>
        </span>
        <span className={`col-start-2 text-muted wrap-anywhere ${isOpen ? "" : "truncate"}`}>{tool.description}</span>
      </button>
      {isOpen && (
        <div className="flex flex-col gap-3 border-t border-line bg-canvas px-3.5 py-3">
          {tool.read_only && tool.policy !== "deny" ? (
            <ToolTrial tool={tool} />
          ) : (
            <p className="text-muted">
              {tool.policy === "deny" ? "This tool is denied." : "Only read-only tools can be tried here."}
            </p>
          )}
          <details>
            <summary className="caption">Argument schema</summary>
            <div className="mt-2">
              <Json value={tool.input_schema} label={`Schema of ${tool.name}`} />
            </div>
          </details>
        </div>
      )}
    </li>
  );
}
