import { useQueryState } from "../../app/router.ts";
import { type OfferedTool, type ServerStatus, useTools } from "../../data/tools.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Page } from "../../ui/page.tsx";
import { ToolRow } from "./tool-row.tsx";

const STATES: Readonly<Record<ServerStatus["status"], { color: string; text: string }>> = {
  ready: { color: "text-good", text: "ready" },
  connecting: { color: "text-warn", text: "connecting" },
  failed: { color: "text-bad", text: "failed" },
  stopped: { color: "text-muted", text: "stopped" },
};

/** The tools that agents can call, by server. */
export default function ToolsPage() {
  const { data, error } = useTools();
  const [query, change] = useQueryState();
  const needle = (query.get("q") ?? "").toLowerCase();
  const fits = ({ name, description }: OfferedTool): boolean => `${name} ${description}`.toLowerCase().includes(needle);
  const tools = data?.tools.filter(fits) ?? [];
  return (
    <Page
      title="Tools"
      note={data && plural(data.tools.length, "tool")}
      aside={
        <input
          type="search"
          data-search
          aria-label="Find a tool"
          placeholder="Find a tool  ( / )"
          className="field h-[30px] w-56"
          value={query.get("q") ?? ""}
          onChange={(event) => change({ q: event.target.value })}
        />
      }
    >
      {error && <Failure error={error} />}
      {!data && !error && <p className="p-6 text-muted">Loading…</p>}
      {data && tools.length === 0 && needle !== "" && <Empty title="No matching tools">Try another word.</Empty>}
      <div className="mx-auto flex max-w-4xl flex-col gap-5 p-4">
        {data?.servers.map((server) => (
          <Server
            key={server.name}
            server={server}
            tools={tools.filter(({ name }) => name.startsWith(`${server.name}/`))}
            isFiltered={needle !== ""}
          />
        ))}
      </div>
    </Page>
  );
}

type ServerProps = { server: ServerStatus; tools: OfferedTool[]; isFiltered: boolean };

function Server({ server: { name, status, error }, tools, isFiltered }: ServerProps) {
  if (isFiltered && tools.length === 0) return null;
  const { color, text } = STATES[status];
  return (
    <section aria-label={name} data-testid="tool-server" data-server={name}>
      <h2 className="mb-1.5 flex items-baseline gap-3 text-[14px] font-semibold">
        {name}
        <span className={`inline-flex items-center gap-1.5 text-[12px] font-medium ${color}`}>
          <span aria-hidden className="size-2 rounded-full bg-current" />
          {text}
        </span>
      </h2>
      {error !== null && <p className="mb-2 rounded-md bg-bad-soft px-3 py-2 text-bad wrap-anywhere">{error}</p>}
      {tools.length > 0 ? (
        <ul className="panel divide-y divide-line overflow-hidden">
          {tools.map((tool) => (
            <ToolRow key={tool.name} tool={tool} />
          ))}
        </ul>
      ) : (
        <p className="text-muted">{status === "ready" ? "No tools." : "Its tools are not known yet."}</p>
      )}
    </section>
  );
}
