import { type FormEvent, useState } from "react";
import type { JsonSchema } from "../../data/queries.ts";
import { type OfferedTool, type ToolAnswer, tryTool } from "../../data/tools.ts";
import { Button } from "../../ui/button.tsx";
import { milliseconds } from "../../ui/format.ts";
import { readObject } from "../../ui/read-object.ts";
import { type Problems, SchemaFields } from "../../ui/schema-fields.tsx";

type Trial =
  | { kind: "idle" }
  | { kind: "running" }
  | { kind: "answered"; answer: ToolAnswer }
  | { kind: "failed"; message: string };

/** A form from the tool's schema, and the tool's answer. */
export function ToolTrial({ tool }: { tool: OfferedTool }) {
  const [trial, setTrial] = useState<Trial>({ kind: "idle" });
  const [problems, setProblems] = useState<Problems>(new Map());
  const schema = tool.input_schema as JsonSchema;
  const run = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = readObject(new FormData(event.currentTarget), schema);
    setProblems(read.problems);
    if (read.problems.size > 0) return;
    setTrial({ kind: "running" });
    try {
      setTrial({ kind: "answered", answer: await tryTool(tool.name, read.value) });
    } catch (error) {
      setTrial({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <form
      noValidate
      aria-label={`Try ${tool.name}`}
      className="flex flex-col gap-3"
      onSubmit={(event) => void run(event)}
    >
      <SchemaFields schema={schema} problems={problems} />
      <div className="flex items-center gap-3">
        <Button type="submit" look="primary" disabled={trial.kind === "running"}>
          {trial.kind === "running" ? "Running…" : "Try it"}
        </Button>
        <span className="text-[12px] text-muted">A trial changes nothing, and no session sees it.</span>
      </div>
      <div role="status">
        {trial.kind === "failed" && <p className="rounded-md bg-bad-soft px-3 py-2 text-bad">{trial.message}</p>}
        {trial.kind === "answered" && <Answer answer={trial.answer} />}
      </div>
    </form>
  );
}

const HEADS: Readonly<Record<ToolAnswer["kind"], string>> = {
  result: "Answer",
  ask: "A step would now ask people",
  wait: "A step would now wait",
};

function Answer({ answer: { kind, text, is_error, latency_ms } }: { answer: ToolAnswer }) {
  return (
    <div data-testid="tool-answer">
      <p className={`mb-1 font-medium ${is_error ? "text-bad" : ""}`}>
        {is_error ? "The tool reported an error" : HEADS[kind]}{" "}
        <span className="ml-2 text-[12px] font-normal text-muted">{milliseconds(latency_ms)}</span>
      </p>
      <pre
        tabIndex={0}
        aria-label="The answer"
        role="group"
        className="max-h-80 overflow-auto rounded-md border border-line bg-sunken p-2.5 font-mono text-[12px] leading-[1.45] whitespace-pre-wrap wrap-anywhere"
      >
        {text === "" ? "(nothing)" : text}
      </pre>
    </div>
  );
}
