import { sessionHref } from "../../app/router.ts";
import { useChildren } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { LastText } from "../sessions/last-text.tsx";

/** The sessions that steps of this one started. */
export function Children({ session_id, onIteration }: { session_id: string; onIteration: (step: number) => void }) {
  const { data, error } = useChildren(session_id);
  if (error) return <Failure error={error} />;
  if (data?.total === 0) return <Empty title="No children" />;
  return (
    <>
      <ul className="flex flex-col" aria-label="Children">
        {data?.sessions.map((row) => (
          <li
            key={row.session_id}
            data-testid="child"
            data-session={row.session_id}
            className="border-b border-line px-4 py-2.5"
          >
            <div className="flex flex-wrap items-baseline gap-x-3">
              <Link href={sessionHref(row.session_id)} className="font-medium wrap-anywhere hover:underline">
                {row.agent_id}
              </Link>
              <span className="text-muted">{row.moniker}</span>
              <Status status={row.status} />
              <span className="text-muted tabular-nums">{plural(row.iteration + 1, "step")}</span>
              {row.spawned_by && <StartedAt iteration={row.spawned_by.iteration} onIteration={onIteration} />}
            </div>
            <p className="font-mono text-[11px] text-muted wrap-anywhere">{row.session_id}</p>
            <p className="line-clamp-2 text-muted wrap-anywhere">
              <LastText row={row} />
            </p>
          </li>
        ))}
      </ul>
      {data && data.total > data.sessions.length && (
        <p className="p-4 text-center text-muted">and {plural(data.total - data.sessions.length, "more session")}</p>
      )}
    </>
  );
}

const StartedAt = ({ iteration, onIteration }: { iteration: number; onIteration: (step: number) => void }) => (
  <button type="button" className="ml-auto text-[12px] text-accent underline" onClick={() => onIteration(iteration)}>
    started by step {iteration}
  </button>
);
