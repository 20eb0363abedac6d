import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Step } from "../../../../src/domain/step.ts";
import { go, href, sessionHref } from "../../app/router.ts";
import { get } from "../../data/api.ts";
import { type Session, useSession } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, dollars, plural, spoken } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { MarkedWords } from "../../ui/marked-words.tsx";
import { Status } from "../../ui/status.tsx";
import { useTitle } from "../../ui/use-title.ts";
import { StateChanges } from "../session/state-changes.tsx";
import { forkPoint } from "./fork-point.ts";
import { SessionPicker } from "./session-picker.tsx";

const PAGE = 100;

/** Compares two sessions from their last common step on. Sessions missing in the address are chosen here. */
export default function ComparePage({ left, right }: { left: string | undefined; right: string | undefined }) {
  if (left !== undefined && right !== undefined) return <NamedSessions left={left} right={right} />;
  return <Choosing left={left} />;
}

function Choosing({ left }: { left: string | undefined }) {
  useTitle("Compare sessions");
  const { data: session } = useSession(left ?? "");
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="border-b border-line bg-surface px-4 py-3">
        <h1 className="text-[16px] font-semibold">Compare</h1>
        <p className="text-muted wrap-anywhere">
          {left === undefined
            ? "Choose two sessions."
            : `Choose the session to compare ${session?.agent_id ?? "it"} with.`}
        </p>
      </header>
      <div className="mx-auto max-w-2xl p-4">
        <SessionPicker
          key={left}
          label={left === undefined ? "The first session" : "The other session"}
          without={left}
          onPick={(session_id) => go(href(["compare", ...(left === undefined ? [] : [left]), session_id]))}
        />
      </div>
    </div>
  );
}

function NamedSessions({ left, right }: { left: string; right: string }) {
  const [one, other] = [useSession(left), useSession(right)];
  const error = one.error ?? other.error;
  const [leftName, rightName] = [one.data?.agent_id, other.data?.agent_id];
  useTitle(leftName === rightName ? `Compare ${leftName ?? "sessions"}` : `Compare ${leftName} with ${rightName}`);
  if (error) return <Failure error={error} />;
  if (!one.data || !other.data) return <p className="p-6 text-muted">Loading…</p>;
  return <Comparison left={one.data} right={other.data} />;
}

function Comparison({ left, right }: { left: Session; right: Session }) {
  const shared = forkPoint(left, right);
  const from = shared ?? 0;
  const [pages, setPages] = useState(1);
  const lefts = useSteps(left, from, pages * PAGE);
  const rights = useSteps(right, from, pages * PAGE);
  const end = Math.max(left.iteration, right.iteration);
  const last = Math.min(end, from + pages * PAGE - 1);
  const iterations = Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => from + index);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="border-b border-line bg-surface px-4 py-3">
        <div className="flex flex-wrap items-center gap-2">
          <h1 className="mr-auto text-[16px] font-semibold">Compare</h1>
          <Button onClick={() => go(href(["compare", right.session_id, left.session_id]))}>Swap</Button>
          <Button onClick={() => go(href(["compare", left.session_id]))}>Compare with another…</Button>
        </div>
        <p className="text-muted">
          {shared === null ? "They share no history." : `They are identical up to step ${shared}.`}
        </p>
        <StartedWith left={left} right={right} />
      </header>
      <div className="text-[13px] md:grid md:grid-cols-[44px_1fr_1fr]" data-testid="comparison">
        <span className="hidden border-b border-line bg-canvas md:block" />
        {[left, right].map((session, index) => (
          <Heading key={session.session_id} session={session} isRight={index === 1} />
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
      {iterations.length === 0 && <Empty title="No steps yet" />}
      {last < end && (
        <p className="p-4 text-center">
          <Button onClick={() => setPages(pages + 1)}>Show {Math.min(PAGE, end - last)} more</Button>
        </p>
      )}
    </div>
  );
}

/** Differences in what the sessions were started with. */
function StartedWith({ left, right }: { left: Session; right: Session }) {
  const [before, after] = [left, right].map(({ moniker, params, options }) => ({ moniker, params, options }));
  if (JSON.stringify(before) === JSON.stringify(after)) return null;
  return (
    <details className="mt-1">
      <summary className="text-[12px] text-muted">They were started with different values</summary>
      <div className="mt-1 max-w-2xl">
        <StateChanges before={before} after={after} />
      </div>
    </details>
  );
}

const LOOKS = { left: "bg-bad-soft text-bad", right: "bg-good-soft text-good" } as const;

function Heading({ session, isRight }: { session: Session; isRight: boolean }) {
  return (
    <div className="top-0 flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-canvas px-3 py-2 md:sticky md:border-l">
      <span className={`rounded px-1.5 text-[11px] font-semibold ${isRight ? LOOKS.right : LOOKS.left}`}>
        {isRight ? "B" : "A"}
      </span>
      <Link href={sessionHref(session.session_id)} className="font-medium text-accent wrap-anywhere hover:underline">
        {session.agent_id}
      </Link>
      <Status status={session.status} />
      <span className="text-[12px] text-muted tabular-nums">
        {plural(session.iteration + 1, "step")} · {count(session.tokens_used)} tokens
        {session.cost_usd > 0 && ` · ${dollars(session.cost_usd)}`}
      </span>
      <span className="w-full font-mono text-[11px] text-muted wrap-anywhere">{session.session_id}</span>
    </div>
  );
}

function useSteps({ session_id, iteration }: Session, from: number, most: number): Map<number, Step> {
  const { data } = useQuery({
    queryKey: ["comparison", session_id, from, Math.min(iteration, from + most)],
    placeholderData: keepPreviousData,
    refetchInterval: 3000,
    queryFn: async ({ signal }) => {
      const range = { session_id, status: "ok", with_calls: false, limit: PAGE };
      const pages: Promise<{ steps: Step[] }>[] = [];
      for (let start = from; start <= iteration && start < from + most; start += PAGE)
        pages.push(
          get("/api/agent-steps", { ...range, min_iteration: start, max_iteration: start + PAGE - 1 }, signal),
        );
      return (await Promise.all(pages)).flatMap(({ steps }) => steps);
    },
  });
  return new Map(data?.map((step) => [step.iteration, step]));
}

type Side = Step | undefined;
type RowProps = { iteration: number; isShared: boolean; left: Side; right: Side; leftBefore: Side; rightBefore: Side };

function Row({ iteration, isShared, left, right, leftBefore, rightBefore }: RowProps) {
  return (
    <>
      <span className="block border-b border-line bg-canvas px-3 py-1 font-mono text-muted md:bg-surface md:py-2 md:pr-2 md:pl-0 md:text-right">
        <span className="md:hidden">Step </span>
        {iteration}
      </span>
      <Cell name="A" step={left} other={right} before={leftBefore} isShared={isShared} look={LOOKS.left} />
      <Cell name="B" step={right} other={left} before={rightBefore} isShared={isShared} look={LOOKS.right} />
    </>
  );
}

type CellProps = { name: string; step: Side; other: Side; before: Side; isShared: boolean; look: string };

function Cell({ name, step, other, before, isShared, look }: CellProps) {
  const differs = !isShared && step !== undefined && other !== undefined && textOf(step) !== textOf(other);
  return (
    <div
      className={`flex min-w-0 gap-2 border-b border-line px-3 py-2 md:border-l ${isShared ? "bg-sunken" : "bg-surface"}`}
      data-differs={differs}
    >
      <span className={`h-5 shrink-0 rounded px-1.5 text-[11px] leading-5 font-semibold md:hidden ${look}`}>
        {name}
      </span>
      <div className="min-w-0 flex-1">
        {!step && <span className="text-muted">no step</span>}
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
            {differs && other ? <MarkedWords own={textOf(step)} other={textOf(other)} look={look} /> : textOf(step)}
          </p>
        )}
        {step && !isShared && before && (
          <details className="mt-1">
            <summary className="text-[12px] text-muted">State changes</summary>
            <StateChanges before={before.state} after={step.state} />
          </details>
        )}
      </div>
    </div>
  );
}

const textOf = ({ text, data }: Step): string => text ?? JSON.stringify(data);
