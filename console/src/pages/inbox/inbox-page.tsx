import { sessionHref } from "../../app/router.ts";
import { type SessionSummary, useNeedsMe } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";
import { ForkButton } from "../fork/fork-button.tsx";
import { QuestionView } from "../question/question-view.tsx";
import { PauseBanner } from "../session/pause-banner.tsx";
import { DestroyButton, RetryButton } from "./answers.tsx";
import { LimitBanner } from "./limit-banner.tsx";
import { isStoppedByLimit } from "./limit-form.tsx";
import { NotifySwitch } from "./notify-switch.tsx";
import { useCurrentCard } from "./use-current-card.ts";

/** Every session that needs somebody. */
export default function InboxPage() {
  const { data, error } = useNeedsMe();
  const current = useCurrentCard(data?.sessions ?? []);
  return (
    <Page title="Needs me" note={data && plural(data.total, "session")} aside={<NotifySwitch />}>
      {error && <Failure error={error} />}
      {data?.total === 0 && (
        <Empty title="Nothing needs you">
          Sessions that ask a question, fail, reach a limit or are held are listed here.{" "}
          <Link href="/" className="text-accent underline">
            Show all sessions
          </Link>
        </Empty>
      )}
      <ul className="mx-auto flex max-w-3xl flex-col gap-3 p-4">
        {data?.sessions.map((row) => (
          <Item
            key={row.session_id}
            row={row}
            place={row.session_id !== current.session_id ? "other" : current.isSeen ? "current" : "next"}
          />
        ))}
      </ul>
      {data && data.total > data.sessions.length && (
        <p className="pb-6 text-center text-muted">and {plural(data.total - data.sessions.length, "more session")}</p>
      )}
    </Page>
  );
}

/** `current`: keys answer this card. `next`: they will once it was visible for a moment. */
type CardPlace = "current" | "next" | "other";

function Item({ row, place }: { row: SessionSummary; place: CardPlace }) {
  return (
    <li
      className={`panel flex flex-col gap-3 p-4 ${place === "other" ? "" : "md:border-accent"}`}
      data-testid="inbox-item"
      data-session={row.session_id}
      data-card={place}
    >
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
  // The list is refreshed in a moment: until then a settled row says what became of it.
  if (!isStoppedByLimit(row)) return <p className="text-muted">{SETTLED[row.status] ?? "It continues."}</p>;
  return (
    <>
      <LimitBanner session={row} />
      <div className="flex flex-wrap gap-2">
        {row.iteration >= 0 && <ForkButton session_id={row.session_id} />}
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
