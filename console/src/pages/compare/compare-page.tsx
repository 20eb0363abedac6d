import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Step } from "../../../../src/domain/step.ts";
import { sessionHref } from "../../app/router.ts";
import { get } from "../../data/api.ts";
import { type Session, useSession } from "../../data/queries.ts";
import { markOwnWords } from "../../data/word-diff.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { spoken } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { useTitle } from "../../ui/use-title.ts";
import { StateChanges } from "../session/state-changes.tsx";

const SHOWN = 100;

/** Two sessions side by side, from the step that they share on. */
export default function ComparePage({ left, right }: { left: string; right: string }) {
  const [one, other] = [useSession(left), useSession(right)];
  const error = one.error ?? other.error;
  const [leftName, rightName] = [one.data?.agent_id, other.data?.agent_id];
  useTitle(leftName === rightName ? `Compare ${leftName ?? "sessions"}` : `Compare ${leftName} with ${rightName}`);
  if (error) return <Failure error={error} />;
  if (!one.data || !other.data) return <p className="p-6 text-muted">Loading…</p>;
  return <Comparison left={one.data} right={other.data} />;
}

function Comparison({ left, right }: { left: Session; right: Session }) {
  const shared = forkPoint(left, right) ?? forkPoint(right, left);
  const from = shared === null ? 0 : shared;
  const lefts = useSteps(left, from);
  const rights = useSteps(right, from);
  const last = Math.min(Math.max(left.iteration, right.iteration), from + SHOWN - 1);
  const iterations = Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => from + index);
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <header className="border-b border-line bg-surface px-4 py-3">
        <h1 className="text-[16px] font-semibold">Compare</h1>
        <p className="text-muted">
          {shared === null ? "These two share no history." : `They share everything up to step ${shared}.`}
        </p>
      </header>
      <div className="grid min-w-[640px] grid-cols-[44px_1fr_1fr] text-[13px]" data-testid="comparison">
        <span className="border-b border-line bg-canvas" />
        {[left, right].map((session) => (
          <div
            key={session.session_id}
            className="sticky top-0 flex items-center gap-3 border-b border-l border-line bg-canvas px-3 py-2"
          >
            <Link href={sessionHref(session.session_id)} className="truncate font-medium text-accent hover:underline">
              {session === right && shared !== null ? "fork" : session.agent_id} · {session.session_id}
            </Link>
            <Status status={session.status} />
          </div>
        ))}
        {iterations.map((iteration) => (
          <Row
            key={iteration}
            iteration={iteration}
            isShared={iteration === shared}
            left={lefts.get(iteration)}
            right={rights.get(iteration)}
            leftBefore={lefts.get(iteration - 1)}
            rightBefore={rights.get(iteration - 1)}
          />
        ))}
      </div>
      {iterations.length === 0 && <Empty title="Neither has a step yet" />}
    </div>
  );
}

const forkPoint = (parent: Session, fork: Session): number | null =>
  fork.parent_session_id === parent.session_id ? fork.parent_iteration : null;

function useSteps({ session_id, iteration }: Session, from: number): Map<number, Step> {
  const { data } = useQuery({
    queryKey: ["comparison", session_id, from, Math.min(iteration, from + SHOWN)],
    placeholderData: keepPreviousData,
    refetchInterval: 3000,
    queryFn: async ({ signal }) => {
      const range = { session_id, min_iteration: from, status: "ok", limit: SHOWN };
      return (await get<{ steps: Step[] }>("/api/agent-steps", range, signal)).steps;
    },
  });
  return new Map(data?.map((step) => [step.iteration, step]));
}

type Side = Step | undefined;
type RowProps = { iteration: number; isShared: boolean; left: Side; right: Side; leftBefore: Side; rightBefore: Side };

function Row({ iteration, isShared, left, right, leftBefore, rightBefore }: RowProps) {
  return (
    <>
      <span className="border-b border-line bg-surface py-2 pr-2 text-right font-mono text-muted">{iteration}</span>
      <Cell step={left} other={right} before={leftBefore} isShared={isShared} look="bg-bad-soft text-bad" />
      <Cell step={right} other={left} before={rightBefore} isShared={isShared} look="bg-good-soft text-good" />
    </>
  );
}

type CellProps = { step: Side; other: Side; before: Side; isShared: boolean; look: string };

function Cell({ step, other, before, isShared, look }: CellProps) {
  const differs = !isShared && step !== undefined && other !== undefined && textOf(step) !== textOf(other);
  return (
    <div
      className={`min-w-0 border-b border-l border-line px-3 py-2 ${isShared ? "bg-sunken" : "bg-surface"}`}
      data-differs={differs}
    >
      {!step && <span className="text-muted">no such step</span>}
      {step?.guidance.map((said, index) => (
        <p
          key={step.action_ids[index] ?? index}
          className="mb-1 border-l-2 border-accent pl-2 text-accent wrap-anywhere"
        >
          {spoken(said)}
        </p>
      ))}
      {step && (
        <p className="whitespace-pre-wrap wrap-anywhere">
          {differs && other ? <Marked own={textOf(step)} other={textOf(other)} look={look} /> : textOf(step)}
        </p>
      )}
      {step && !isShared && before && (
        <details className="mt-1">
          <summary className="text-[12px] text-muted">What it changed</summary>
          <StateChanges before={before.state} after={step.state} />
        </details>
      )}
    </div>
  );
}

const textOf = ({ text, data }: Step): string => text ?? JSON.stringify(data);

/** The words that the other side does not have stand out. */
function Marked({ own, other, look }: { own: string; other: string; look: string }) {
  let at = 0;
  return markOwnWords(own, other).map(({ text, isOwn }) => {
    const key = at;
    at += text.length;
    return isOwn ? (
      <mark key={key} className={`rounded-sm px-0.5 ${look}`}>
        {text}
      </mark>
    ) : (
      text
    );
  });
}
