import { href } from "../../app/router.ts";
import { count } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import type { AgentGroup } from "./use-loaded-rows.ts";

/** The head of an agent's group: its name and counts by status. */
export function GroupHead({ group: { agent_id, sessions } }: { group: AgentGroup }) {
  const byStatus = [...Map.groupBy(sessions, ({ status }) => status)];
  return (
    <div
      data-testid="agent-group"
      className="flex flex-wrap items-baseline gap-x-4 gap-y-0.5 border-b border-line bg-canvas px-4 pt-3 pb-1.5"
    >
      <Link href={href([], { agent: agent_id })} className="font-semibold wrap-anywhere hover:underline">
        {agent_id}
      </Link>
      {byStatus.map(([status, members]) => (
        <span key={status} className="text-[12px]">
          <Status status={status} /> <span className="tabular-nums">{count(members.length)}</span>
        </span>
      ))}
    </div>
  );
}
