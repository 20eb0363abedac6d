import { href, sessionHref } from "../app/router.ts";
import { useAgents } from "../data/queries.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Failure } from "../ui/empty.tsx";
import { count, plural } from "../ui/format.ts";
import { Link } from "../ui/link.tsx";
import { Status } from "../ui/status.tsx";
import { Age } from "../ui/time.tsx";

/** Agents by name, each with its newest session. */
export default function AgentsPage() {
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useAgents();
  const agents = data?.pages.flat();
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="flex h-[49px] shrink-0 items-center border-b border-line bg-surface px-4">
        <h1 className="text-[16px] font-semibold">
          Agents
          {agents && (
            <span className="ml-2 text-[13px] font-normal text-muted">
              {plural(agents.length, "agent", "agents", !hasNextPage)}
            </span>
          )}
        </h1>
      </header>
      {error && <Failure error={error} />}
      {agents?.length === 0 && (
        <Empty title="No agent has run yet">
          <Link href="/start" className="text-accent underline">
            Start the first one
          </Link>
        </Empty>
      )}
      <ul>
        {agents?.map(({ agent_id, moniker, session_count, latest }) => (
          <li
            key={agent_id}
            className="grid grid-cols-[1fr_auto] items-center gap-x-4 border-b border-line bg-surface px-4 py-2 md:grid-cols-[minmax(0,2fr)_100px_100px_1fr_60px]"
          >
            <Link href={sessionHref(latest.session_id)} className="truncate font-medium hover:underline">
              {agent_id}
            </Link>
            <span className="hidden text-muted md:block">{moniker}</span>
            <Status status={latest.status} />
            <Link href={href([], { agent: agent_id })} className="hidden text-accent hover:underline md:block">
              {session_count === 1 ? "1 session" : `${count(session_count)} sessions`}
            </Link>
            <span className="hidden text-right text-muted md:block">
              <Age at={latest.updated_at} />
            </span>
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <div className="flex justify-center p-3">
          <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}
