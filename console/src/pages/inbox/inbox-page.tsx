import { sessionHref } from "../../app/router.ts";
import { type SessionSummary, useNeedsMe } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";
import { QuestionView } from "../question/question-view.tsx";
import { PauseBanner } from "../session/pause-banner.tsx";
import { DestroyButton, RetryButton } from "./answers.tsx";
import { isStoppedByLimit, type Limit, LimitForm } from "./limit-form.tsx";

/** One place for every session that waits for a person. */
export default function InboxPage() {
  const { data, error } = useNeedsMe();
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="flex h-[49px] shrink-0 items-center border-b border-line bg-surface px-4">
        <h1 className="text-[16px] font-semibold">
          Needs me
          {data && <span className="ml-2 text-[13px] font-normal text-muted">{plural(data.total, "session")}</span>}
        </h1>
      </header>
      {error && <Failure error={error} />}
      {data?.total === 0 && (
        <Empty title="Nothing needs you">
          Sessions that ask something, fail, or reach a limit show here. Until then they{" "}
          <Link href="/" className="text-accent underline">
            work on their own
          </Link>
          .
        </Empty>
      )}
      <ul className="mx-auto flex max-w-3xl flex-col gap-3 p-4">
        {data?.sessions.map((row) => (
          <Item key={row.session_id} row={row} />
        ))}
      </ul>
      {data && data.total > data.sessions.length && (
        <p className="pb-6 text-center text-muted">and {plural(data.total - data.sessions.length, "more session")}</p>
      )}
    </div>
  );
}

function Item({ row }: { row: SessionSummary }) {
  return (
    <li className="panel flex flex-col gap-3 p-4" data-testid="inbox-item" data-session={row.session_id}>
      <div className="flex items-center gap-3">
        <Link href={sessionHref(row.session_id)} className="truncate font-semibold hover:underline">
          {row.agent_id}
        </Link>
        <span className="text-muted">{row.moniker}</span>
        <Status status={row.status} />
        <span className="ml-auto text-muted">
          <Age at={row.updated_at} />
        </span>
      </div>
      <Reason row={row} />
    </li>
  );
}

function Reason({ row }: { row: SessionSummary }) {
  if (row.question !== null)
    return (
      <>
        <QuestionView session={row} />
        <PauseBanner session={row} />
      </>
    );
  if (row.status === "paused")
    return (
      <>
        <PauseBanner session={row} />
        <div>
          <DestroyButton session={row} />
        </div>
      </>
    );
  if (row.status === "error")
    return (
      <>
        <p className="rounded-md bg-bad-soft px-3 py-2 text-bad wrap-anywhere">{row.last_error}</p>
        <div className="flex flex-wrap gap-2">
          <RetryButton session_id={row.session_id} />
          <DestroyButton session={row} />
        </div>
      </>
    );
  // The list is read again in a moment: until then a row that needs nobody any more says what became of it.
  if (!isStoppedByLimit(row)) return <p className="text-muted">{SETTLED[row.status] ?? "It goes on."}</p>;
  const limit = row.stop_reason as Limit;
  return (
    <>
      <p className="rounded-md bg-warn-soft px-3 py-2">
        It reached <span className="font-mono">{limit}</span> ({row.options[limit]?.toLocaleString()}) after step{" "}
        {row.iteration}.
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <LimitForm session={row} />
        <DestroyButton session={row} />
      </div>
    </>
  );
}

const SETTLED: Readonly<Partial<Record<SessionSummary["status"], string>>> = {
  done: "It is done.",
  stopping: "It is being destroyed.",
  stopped: "It was destroyed.",
};
