import { href, sessionHref } from "../app/router.ts";
import { type Agent, useAgents } from "../data/queries.ts";
import { STATUSES } from "../data/statuses.ts";
import { Empty, Failure } from "../ui/empty.tsx";
import { count, plural } from "../ui/format.ts";
import { Link } from "../ui/link.tsx";
import { Page } from "../ui/page.tsx";
import { ShowMore } from "../ui/show-more.tsx";
import { Status } from "../ui/status.tsx";
import { Amount, Cell, type Head, Row, Table, WIDE } from "../ui/table.tsx";
import { Age } from "../ui/time.tsx";

const HEADS: Head[] = [
  "Agent",
  { name: "Moniker", isWide: true },
  { name: "Newest session", isWide: true },
  { name: "Sessions", isAmount: true, isWide: true },
  "By status",
  { name: "Updated", isAmount: true },
];

/** Agents by name, each with its newest session and counts by status. */
export default function AgentsPage() {
  const pages = useAgents();
  const { data, error, hasNextPage } = pages;
  const agents = data?.pages.flat();
  return (
    <Page title="Agents" note={agents && plural(agents.length, "agent", "agents", !hasNextPage)}>
      {error && <Failure error={error} />}
      {!agents && !error && <p className="p-6 text-muted">Loading…</p>}
      {agents?.length === 0 && (
        <Empty title="No agents yet">
          <Link href="/start" className="text-accent underline">
            Start the first one
          </Link>
        </Empty>
      )}
      {agents && agents.length > 0 && (
        <div className="p-4">
          <Table label="Agents" heads={HEADS}>
            {agents.map((agent) => (
              <AgentRow key={agent.agent_id} agent={agent} />
            ))}
          </Table>
        </div>
      )}
      <ShowMore pages={pages} />
    </Page>
  );
}

function AgentRow({ agent: { agent_id, moniker, session_count, counts, latest } }: { agent: Agent }) {
  return (
    <Row data-testid="agent">
      <Cell className="min-w-32 font-medium wrap-anywhere">
        <Link href={sessionHref(latest.session_id)} className="hover:underline">
          {agent_id}
        </Link>
      </Cell>
      <Cell className={WIDE}>
        <Link href={href(["monikers", moniker])} className="text-muted hover:underline">
          {moniker}
        </Link>
      </Cell>
      <Cell className={WIDE}>
        <Status status={latest.status} />
      </Cell>
      <Amount className={WIDE}>
        <Link href={href([], { agent: agent_id })} className="whitespace-nowrap text-accent hover:underline">
          {plural(session_count, "session")}
        </Link>
      </Amount>
      <Cell>
        <ul className="flex flex-wrap gap-x-4 gap-y-0.5">
          {STATUSES.filter((status) => counts[status] > 0).map((status) => (
            <li key={status}>
              <Link href={href([], { agent: agent_id, status })} className="whitespace-nowrap hover:underline">
                <Status status={status} /> <span className="tabular-nums">{count(counts[status])}</span>
              </Link>
            </li>
          ))}
        </ul>
      </Cell>
      <Amount>
        <Age at={latest.updated_at} />
      </Amount>
    </Row>
  );
}
