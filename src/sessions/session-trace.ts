import type { Action } from "../domain/action.ts";
import type { Session } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import { readTraceparent, toTraceparent } from "../domain/traceparent.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";
import { StepError } from "../monikers/moniker.ts";
import type { Store } from "../store/store.ts";
import { StepSpan, TurnSpan } from "../tracing/agent-spans.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { firstSlice } from "./guidance-slice.ts";
import { describeError } from "./retry.ts";

/** The most steps in a turn, so that no trace grows without end: a turn ends at multiples of this. */
const LONGEST_TURN = 200;
/** Steps at least this far apart, in milliseconds, are a turn each. */
const LONG_INTERVAL_MS = 10_000;
const PAGE = 50;

type EarlierTurn = { first_iteration: number; at: number; last: Step };

/**
 * The spans of one session.
 *
 * TRACE-1  The rows alone decide where a turn begins: at the first step, at a step with guidance, at a step after a rest, and
 *          at intervals in a long run. A process that takes over a session therefore continues the same turn, whose ids derive
 *          from it.
 * TRACE-2  A turn is exported once, by the process that ends it. A turn interrupted by a crash is exported by the next owner.
 * TRACE-3  Nothing here fails a step.
 */
export class SessionTrace {
  readonly #tracer: Tracer;
  readonly #store: Store;
  #turn: TurnSpan | null = null;
  #wasRunning: boolean;
  /** Whether the last committed step let the session rest; undefined until looked up. */
  #hasRested: boolean | undefined;
  #step: StepSpan | null = null;

  constructor(tracer: Tracer, store: Store, session: Session, after_crash: boolean) {
    this.#tracer = tracer;
    this.#store = store;
    this.#wasRunning = after_crash && session.status === "running";
  }

  /** The running step, or the last one. */
  get step(): StepSpan | null {
    return this.#step;
  }

  /** Finds the turn of the session's next step. */
  async prepare(session: Session): Promise<void> {
    this.#turn = await this.#turnOf(session).catch(() => this.#newTurn(session, null)); // TRACE-3
  }

  /** An attempt at the session's next step begins. */
  start(session: Session, { version, remote }: VersionedMoniker, attempt: number): StepSpan {
    this.#turn ??= this.#newTurn(session, null);
    this.#step = new StepSpan(this.#tracer, this.#turn, { session, attempt, version: version ?? null, remote });
    return this.#step;
  }

  failed(error: unknown): void {
    this.#step?.failed(errorType(error), describeError(error));
  }

  /** The step was committed, together with these actions. */
  committed(step: Step, actions: readonly Action[]): void {
    if (step.status !== "ok") return;
    this.#hasRested = restsAfter(step);
    const ids = new Set(step.action_ids);
    this.#step?.committed(
      step.text,
      actions.filter(({ action_id }) => ids.has(action_id)),
    );
  }

  /** The session has stopped running. */
  rest(session: Session): void {
    this.#turn?.end(session);
  }

  /** TRACE-1. */
  async #turnOf(session: Session): Promise<TurnSpan> {
    const iteration = session.iteration + 1;
    if (this.#turn?.first_iteration === iteration) return this.#turn;
    const first = firstIteration(session);
    if (!this.#turn && iteration > first && (this.#wasRunning || !isCertainStart(session))) {
      const earlier = await earlierTurn(this.#store, session, first);
      if (earlier) {
        const { first_iteration, at, last } = earlier;
        const parent = first_iteration === first ? await this.#startedBy(session) : null;
        const is_owed = this.#wasRunning; // TRACE-2
        this.#turn = new TurnSpan(this.#tracer, session, { first_iteration, parent, at, is_owed, guidance: [] });
        this.#hasRested = restsAfter(last);
      }
    }
    this.#wasRunning = false;
    const begins = !this.#turn || iteration === first || isCertainStart(session) || this.#hasRested === true;
    if (this.#turn && !begins) return this.#turn;
    this.#turn?.end(session);
    return this.#newTurn(session, iteration === first ? await this.#startedBy(session) : null);
  }

  #newTurn(session: Session, parent: string | null): TurnSpan {
    const { guidance } = firstSlice(session);
    const first_iteration = session.iteration + 1;
    return new TurnSpan(this.#tracer, session, { first_iteration, parent, is_owed: true, guidance });
  }

  /** The span of the request or step that created the session. */
  async #startedBy({ created_action_id }: Session): Promise<string | null> {
    const [action] = await this.#store.getActions([created_action_id]);
    const place = readTraceparent(action?.metadata["traceparent"]);
    return place && toTraceparent(place);
  }
}

const firstIteration = ({ parent_iteration }: Session): number => (parent_iteration ?? -1) + 1;

/** Whether the session's next step certainly begins a turn, judging by its row. */
const isCertainStart = (session: Session): boolean =>
  session.pending_guidance.length > 0 || (session.iteration + 1) % LONGEST_TURN === 0 || isSlow(session);

const isSlow = ({ options }: Session): boolean => (options.step_interval_ms ?? 0) >= LONG_INTERVAL_MS;

const restsAfter = ({ directives }: Step): boolean => directives?.wait !== undefined || directives?.ask !== undefined;

/** The turn of the session's last step. */
async function earlierTurn(store: Store, session: Session, first: number): Promise<EarlierTurn | null> {
  const { session_id, iteration } = session;
  const lowest = Math.max(first, iteration - (iteration % LONGEST_TURN));
  let last: Step | undefined;
  let later: Step | undefined;
  for (let high = iteration; high >= lowest; high -= PAGE) {
    const min_iteration = Math.max(lowest, high - PAGE + 1);
    const range = { min_iteration, max_iteration: high, limit: PAGE, offset: 0 };
    const rows = await store.listSteps({ session_id, status: "ok", ...range });
    for (const row of rows.toReversed()) {
      last ??= row;
      if (later && restsAfter(row)) return turnFrom(later, last);
      if (row.guidance.length > 0 || row.iteration === lowest || isSlow(session)) return turnFrom(row, last);
      later = row;
    }
  }
  return last && later ? turnFrom(later, last) : null;
}

const turnFrom = ({ iteration, created_at, latency_ms }: Step, last: Step): EarlierTurn => ({
  first_iteration: iteration,
  at: Date.parse(created_at) - latency_ms,
  last,
});

function errorType(error: unknown): string {
  if (error instanceof StepError) return error.code;
  return error instanceof Error ? error.name : "error";
}
