import type { Action, Session } from "../../../data/queries.ts";
import type { StepSpan } from "../../../data/spans.ts";
import { spoken } from "../../../ui/format.ts";
import { span as spanWords } from "../../../ui/time.tsx";

/**
 * What happened in a session on one time axis, derived from its steps and requests.
 *
 * PICTURE-1  A step's bar is its last attempt: it ends with the commit and begins `latency_ms` earlier. Earlier attempts have no rows;
 *            the time before the bar says how many there were, and whether the process died during one (`crashes`).
 * PICTURE-2  Calls have a duration and an order, but no start time: they are laid end to end within their step.
 * PICTURE-3  An orderly restart leaves nothing in the steps. It is known from the start times of processes that run now.
 * PICTURE-4  Requests older than those that were read, and those of a fork's parent, are known from the steps that consumed them.
 */
export type Picture = {
  bars: readonly Bar[];
  rests: readonly Rest[];
  marks: readonly Mark[];
  lanes: Lanes;
  from: number;
  to: number;
};
export type Bar = {
  start: number;
  end: number;
  iteration: number;
  token: string;
  look: "ok" | "error" | "running";
  attempts: number;
  calls: readonly CallBar[];
};
type CallBar = { kind: "model" | "tool"; start: number; end: number; name: string; failed: boolean };
export type RestKind = "waits" | "asks" | "retries" | "paused" | "failed" | "crash" | "restart";
export type Rest = { kind: RestKind; start: number; end: number; iteration: number; words: string };
export type MarkKind = "guidance" | "failure" | "crash" | "restart";
export type Mark = { kind: MarkKind; at: number; iteration: number | null; words: string };

export type PictureFacts = {
  session: Session;
  spans: readonly StepSpan[];
  actions: readonly Action[];
  /** When the processes that run now started. */
  processStarts: readonly number[];
  now: number;
};

/** Shorter rests are not shown. */
const SHORTEST_REST_MS = 20;
/** A gap without a known reason is shown from this length on. */
const UNEXPLAINED_MS = 1000;

export function pictureOf(facts: PictureFacts): Picture {
  const { session, spans, now } = facts;
  const bars = spans.map(barOf);
  const pauses = pausesIn(facts);
  const rests: Rest[] = [];
  const created = Date.parse(session.created_at);
  let before: StepSpan | undefined;
  for (const [index, next] of spans.entries()) {
    const bar = bars[index] as Bar;
    const end = bars[index - 1]?.end ?? created;
    const own = next.session_id === session.session_id && before?.session_id !== session.session_id;
    const begins = own ? Math.max(end, created) : end;
    if (bar.start - begins >= SHORTEST_REST_MS || next.attempts > 1)
      rests.push(...restsBetween(before, next, { start: begins, end: bar.start }, facts, pauses));
    before = next;
  }
  const running = runningBar(session, now);
  if (running) {
    rests.push(...restBeforeRunning(session, { start: bars.at(-1)?.end ?? created, end: running.start }));
    bars.push(running);
  } else rests.push(...restNow(before, facts));
  rests.push(...pauses);
  rests.sort((a, b) => a.start - b.start);
  const from = Math.min(Date.parse(session.created_at), bars[0]?.start ?? Number.POSITIVE_INFINITY);
  const to = session.ended_at === null ? now : Date.parse(session.ended_at);
  const marks = marksIn(facts, rests);
  return { bars, rests, marks, lanes: lanesOf(bars), from, to: Math.max(to, bars.at(-1)?.end ?? to, from + 1) };
}

/** Top and height of a lane, in pixels. */
export type Lane = { top: number; height: number; label: string };
export type Lanes = {
  marks: Lane;
  steps: Lane;
  /** Null where no call of that kind was made. */
  model: Lane | null;
  tool: Lane | null;
  rests: Lane;
  /** Height of the whole picture. */
  height: number;
};
export const AXIS_HEIGHT = 20;

function lanesOf(bars: readonly Bar[]): Lanes {
  let top = AXIS_HEIGHT + 2;
  const lane = (height: number, label: string, gap = 4): Lane => {
    const placed = { top, height, label };
    top += height + gap;
    return placed;
  };
  const has = (kind: CallBar["kind"]) => bars.some(({ calls }) => calls.some((call) => call.kind === kind));
  return {
    marks: lane(14, "", 2),
    steps: lane(30, "Steps"),
    model: has("model") ? lane(14, "Models") : null,
    tool: has("tool") ? lane(14, "Tools") : null,
    rests: lane(16, "Waits", 6),
    height: top,
  };
}

/** A row never changes, so its bar is made once. */
const made = new WeakMap<StepSpan, Bar>();

function barOf(row: StepSpan): Bar {
  const bar = made.get(row) ?? newBar(row);
  made.set(row, bar);
  return bar;
}

function newBar(row: StepSpan): Bar {
  const end = Date.parse(row.created_at);
  const start = end - row.latency_ms;
  return {
    start,
    end,
    iteration: row.iteration,
    token: row.step_token,
    look: row.status,
    attempts: row.attempts,
    calls: row.calls.length === 0 ? NO_CALLS : callBars(row, start, end),
  };
}

const NO_CALLS: readonly CallBar[] = [];

/** PICTURE-2. Calls of earlier attempts, or calls that ran in parallel, add up to more than the step: they share its time. */
function callBars({ calls }: StepSpan, start: number, end: number): CallBar[] {
  const total = calls.reduce((sum, { latency_ms }) => sum + latency_ms, 0);
  const scale = total > end - start && total > 0 ? (end - start) / total : 1;
  let at = start;
  return calls.map(({ kind, name, latency_ms, failed }) => {
    const begins = at;
    at += latency_ms * scale;
    return { kind, name, failed, start: begins, end: at };
  });
}

type Interval = { start: number; end: number };

/** Why no step ran between two rows. */
function restsBetween(
  before: StepSpan | undefined,
  next: StepSpan,
  gap: Interval,
  { session, processStarts }: PictureFacts,
  pauses: readonly Rest[],
): Rest[] {
  const { iteration } = next;
  const length = spanWords(gap.end - gap.start);
  const rest = (kind: RestKind, words: string): Rest[] => [{ kind, ...gap, iteration, words }];
  const restarted = processStarts.some((at) => at > gap.start && at <= gap.end);
  if (before?.status === "error" && before.iteration === iteration)
    return rest("failed", `stopped for ${length} after the error`);
  if (next.crashes > 0) return rest("crash", crashWords(next.crashes, length)); // PICTURE-1
  if (restarted && !before?.rests) return rest("restart", `server restarted, resumed after ${length}`);
  if (next.attempts > 1) return rest("retries", `attempt ${next.attempts}, resumed after ${length}`);
  if (pauses.some(({ start, end }) => start < gap.end && end > gap.start)) return [];
  if (before?.rests === "asks") return rest("asks", `asked, answered after ${length}`);
  if (before?.rests === "waits" || next.guidance > 0) return rest("waits", `waited ${length}`);
  const expected = session.options.step_interval_ms ?? 0;
  return gap.end - gap.start - expected > UNEXPLAINED_MS ? rest("waits", `no step for ${length}`) : [];
}

const crashWords = (crashes: number, length: string): string =>
  `process crashed${crashes > 1 ? ` ${crashes} times` : ""}, resumed after ${length}`;

/** Why the running step did not start right after the one before. */
function restBeforeRunning({ started_attempt, iteration }: Session, gap: Interval): Rest[] {
  if (started_attempt?.iteration !== iteration + 1 || gap.end <= gap.start) return [];
  const { attempts: crashes, begun = 0, once } = started_attempt;
  // The mark of a step that must not run twice counts the attempt under way.
  const earlier = once ? begun - 1 : begun;
  const length = spanWords(gap.end - gap.start);
  const rest = { ...gap, iteration: iteration + 1 };
  if (crashes > 0) return [{ kind: "crash", ...rest, words: crashWords(crashes, length) }];
  return earlier > 0 ? [{ kind: "retries", ...rest, words: `resumed after ${length}` }] : [];
}

/** The time since the last row while no step runs. */
function restNow(before: StepSpan | undefined, { session, now }: PictureFacts): Rest[] {
  const start = Math.max(Date.parse(before?.created_at ?? session.created_at), Date.parse(session.created_at));
  const iteration = session.iteration + 1;
  const rest = (kind: RestKind, words: string): Rest[] => [{ kind, start, end: now, iteration, words }];
  if (session.status === "waiting") return session.question ? rest("asks", "asks") : rest("waits", "waits");
  if (session.status === "running" && session.retry_at !== null) return rest("retries", "waits to try again");
  if (session.status === "paused" && session.pause_reason?.kind !== "person") return rest("paused", "held");
  return [];
}

function runningBar(session: Session, now: number): Bar | null {
  if (session.step_started_at === null) return null;
  const start = Date.parse(session.step_started_at);
  const { iteration, next_step_token: token } = session;
  return {
    start,
    end: Math.max(start, now),
    iteration: iteration + 1,
    token,
    look: "running",
    attempts: 1,
    calls: NO_CALLS,
  };
}

/** From each pause to the next resume. A resume without a pause ended a hold, which began with the step before. */
function pausesIn({ actions, spans, session, now }: PictureFacts): Rest[] {
  const pauses: Rest[] = [];
  let since: { at: number; by: string } | null = null;
  const add = (start: number, end: number, by: string) =>
    pauses.push({
      kind: "paused",
      start,
      end,
      iteration: iterationAt(spans, end),
      words: `${by} for ${spanWords(end - start)}`,
    });
  for (const action of inTime(actions)) {
    if (action.outcome !== "ok") continue;
    const at = Date.parse(action.processed_at ?? action.created_at);
    if (action.action_type === "agent_pause") since ??= { at, by: `paused${byWhom(action)}` };
    if (action.action_type !== "agent_resume") continue;
    const before = spans.findLast(({ created_at }) => Date.parse(created_at) <= at);
    if (since) add(since.at, at, since.by);
    else if (before && before.status === "ok" && before.rests === null) add(Date.parse(before.created_at), at, "held");
    since = null;
  }
  if (since) add(since.at, session.ended_at === null ? now : Date.parse(session.ended_at), since.by);
  return pauses;
}

const byWhom = ({ metadata }: Action): string =>
  typeof metadata["user_id"] === "string" ? ` by ${metadata["user_id"]}` : "";

const inTime = (actions: readonly Action[]): Action[] =>
  actions.toSorted((a, b) => ((a.processed_at ?? a.created_at) < (b.processed_at ?? b.created_at) ? -1 : 1));

/** The first step committed at a time or later. */
const iterationAt = (spans: readonly StepSpan[], at: number): number =>
  spans.find(({ created_at }) => Date.parse(created_at) >= at)?.iteration ?? spans.at(-1)?.iteration ?? 0;

const TALKS: ReadonlySet<Action["action_type"]> = new Set(["agent_interrupt", "agent_input", "agent_answer"]);

function marksIn({ actions, spans }: PictureFacts, rests: readonly Rest[]): Mark[] {
  const failures = spans
    .filter(({ status }) => status === "error")
    .map(({ created_at, iteration, error, attempts }): Mark => {
      const tries = attempts > 1 ? ` after ${attempts} attempts` : "";
      const words = `step ${iteration} failed${tries}: ${error}`;
      return { kind: "failure", at: Date.parse(created_at), iteration, words };
    });
  const restarts = rests.flatMap(({ kind, end, iteration, words }): Mark[] =>
    kind === "crash" || kind === "restart" ? [{ kind, at: end, iteration, words }] : [],
  );
  return [...guidanceMarks(actions, spans), ...failures, ...restarts].sort((a, b) => a.at - b.at);
}

const LONGEST_WORDS = 80;

function guidanceMarks(actions: readonly Action[], spans: readonly StepSpan[]): Mark[] {
  const talks = actions.filter(({ action_type }) => TALKS.has(action_type));
  const arrivals = talks.map((action): Mark => {
    const said = spoken(action.payload["guidance"] ?? action.payload["answer"] ?? action.payload);
    const words = `guidance${byWhom(action)}: ${said.length > LONGEST_WORDS ? `${said.slice(0, LONGEST_WORDS)}…` : said}`;
    return { kind: "guidance", at: Date.parse(action.created_at), iteration: action.consumed_iteration, words };
  });
  // PICTURE-4.
  const talkIterations = new Set(talks.map(({ consumed_iteration }) => consumed_iteration));
  const consumed = spans
    .filter(({ guidance, iteration }) => guidance > 0 && !talkIterations.has(iteration))
    .map((span): Mark => {
      const words = span.guidance === 1 ? "guidance" : `${span.guidance} pieces of guidance`;
      return { kind: "guidance", at: barOf(span).start, iteration: span.iteration, words };
    });
  return [...consumed, ...arrivals];
}
