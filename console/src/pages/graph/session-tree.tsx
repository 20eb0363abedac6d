import { useState } from "react";
import { href, sessionHref } from "../../app/router.ts";
import { useLineage } from "../../data/lineage.ts";
import { type SessionSummary, useChildren, useForks } from "../../data/queries.ts";
import { Failure } from "../../ui/empty.tsx";
import { FoldButton } from "../../ui/fold-button.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { ForkedByOf } from "./forked-by.tsx";

/** A session's ancestors, children and forks, each with its status. */
export function SessionTree({ session_id }: { session_id: string }) {
  const { data, error } = useLineage(session_id);
  if (error) return <Failure error={error} />;
  const [root] = data?.sessions ?? [];
  if (!root) return <p className="text-muted">Loading…</p>;
  const line = new Set(data?.sessions.map((row) => row.session_id));
  return (
    <ul data-testid="session-tree" className="flex flex-col">
      <Branch row={root} line={line} current={session_id} isOpenAtFirst />
    </ul>
  );
}

type BranchProps = {
  row: SessionSummary;
  /** The lineage of the current session: these branches are open. */
  line: ReadonlySet<string>;
  current: string;
  isOpenAtFirst: boolean;
};

function Branch({ row, line, current, isOpenAtFirst }: BranchProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst || line.has(row.session_id));
  const name = `${row.agent_id} ${row.session_id}`;
  return (
    <li data-testid="branch" data-session={row.session_id}>
      <div
        className={`flex flex-wrap items-center gap-x-2.5 rounded-md px-1.5 py-1 ${row.session_id === current ? "bg-accent-soft" : ""}`}
      >
        <FoldButton isOpen={isOpen} onOpen={setOpen} aria-label={`Children and forks of ${name}`} />
        <Link
          href={sessionHref(row.session_id)}
          className="font-medium wrap-anywhere hover:underline"
          aria-current={row.session_id === current ? "page" : undefined}
        >
          {row.agent_id}
        </Link>
        <Status status={row.status} />
        <span className="text-[12px] text-muted">
          <Origin row={row} />
          {plural(row.iteration + 1, "step")}
        </span>
        {row.session_id !== current && (
          <Link
            href={href(["compare", current, row.session_id])}
            aria-label={`Compare with ${name}`}
            className="ml-auto text-[12px] text-accent hover:underline"
          >
            Compare
          </Link>
        )}
      </div>
      {isOpen && <Below row={row} line={line} current={current} />}
    </li>
  );
}

function Origin({ row: { session_id, parent_session_id, parent_iteration, spawned_by } }: { row: SessionSummary }) {
  if (parent_session_id !== null)
    return (
      <>
        fork at step {parent_iteration}
        <ForkedByOf session_id={session_id} />
        {" · "}
      </>
    );
  return spawned_by === null ? null : <>started by step {spawned_by.iteration} · </>;
}

function Below({ row, line, current }: Omit<BranchProps, "isOpenAtFirst">) {
  const children = useChildren(row.session_id);
  const forks = useForks(row.session_id);
  const error = children.error ?? forks.error;
  if (error) return <Failure error={error} />;
  if (!children.data || !forks.data) return <p className="pl-8 text-muted">Loading…</p>;
  const rows = [...children.data.sessions, ...forks.data.sessions].sort((one, other) =>
    one.created_at < other.created_at ? -1 : 1,
  );
  const missing = children.data.total + forks.data.total - rows.length;
  return (
    <>
      {rows.length > 0 && (
        <ul className="ml-[13px] border-l border-line pl-3">
          {rows.map((below) => (
            <Branch key={below.session_id} row={below} line={line} current={current} isOpenAtFirst={false} />
          ))}
        </ul>
      )}
      {rows.length === 0 && <p className="pl-8 text-[12px] text-muted">No children, no forks.</p>}
      {missing > 0 && <p className="pl-8 text-[12px] text-muted">and {plural(missing, "more session")}</p>}
    </>
  );
}
