import type { Step } from "../../domain/step.ts";
import type { Store } from "../../store/store.ts";

export type Sample = { at: string; steps: number; errors: number; tokens: number; latency_ms: number };

const BUCKET_MS = 5000;
const BUCKETS = 360;
/** The most sessions and steps read from before the start. */
const MOST_SESSIONS = 200;
const MOST_STEPS = 20_000;
/** Iterations per read: steps are read with their states, which may be large. */
const PAGE = 500;
/** An iteration has a row for each attempt that failed. */
const MOST_ROWS = 4 * PAGE;

const bucketOf = (ms: number): number => Math.floor(ms / BUCKET_MS);
type StepSource = Pick<Store, "summarizeSessions" | "listSteps">;
/** A session read backwards: up to this iteration nothing is read yet, and since this time everything is. */
type Backlog = { session_id: string; iteration: number; known_since: string };

type CountedStep = Pick<Step, "status" | "tokens_used" | "latency_ms">;
type TimedStep = CountedStep & { at: number };

/**
 * The throughput of the last half hour in buckets of five seconds. Only buckets in which something happened are kept.
 *
 * This process counts its steps as they are committed. Those from before its start are read from the store once, newest first,
 * up to a limit: samples begin where all steps are known, since partial data would look like a lull.
 */
export class Throughput {
  readonly #counts = new Map<number, Omit<Sample, "at">>();
  readonly #startedAt = Date.now();
  /** The first bucket with complete data. */
  #first = Math.ceil(this.#startedAt / BUCKET_MS);
  #restored: Promise<void> | undefined;

  stepCommitted(step: CountedStep): void {
    this.#count(step, bucketOf(Date.now()));
  }

  /** Reads the store only once. */
  restore(store: StepSource): Promise<void> {
    this.#restored ??= this.#readSteps(store).catch(() => {
      this.#restored = undefined;
    });
    return this.#restored;
  }

  async #readSteps(store: StepSource): Promise<void> {
    const since = new Date(this.#startedAt - BUCKETS * BUCKET_MS).toISOString();
    const { sessions } = await store.summarizeSessions({ sort: "updated_at", since, limit: MOST_SESSIONS, offset: 0 });
    const backlogs = sessions.map(({ session_id, iteration, updated_at }): Backlog => {
      // The attempts of a step that has not succeeded yet have the next iteration.
      return { session_id, iteration: iteration + 1, known_since: updated_at };
    });
    // The sessions left out have no steps after the last one listed.
    const listed_since = sessions.length === MOST_SESSIONS ? (sessions.at(-1)?.updated_at ?? since) : since;
    const steps: TimedStep[] = [];
    let known_since = listed_since;
    while (backlogs.length > 0) {
      const shortest = backlogs.reduce((one, other) => (other.known_since > one.known_since ? other : one));
      known_since = shortest.known_since > listed_since ? shortest.known_since : listed_since;
      if (known_since === listed_since || steps.length >= MOST_STEPS) break;
      const read = await readBack(store, shortest, since);
      if (!read) break;
      steps.push(...read);
    }
    const complete = steps.filter(({ at }) => at >= Date.parse(known_since) && at < this.#startedAt);
    for (const step of complete) this.#count(step, bucketOf(step.at));
    const earliest = Math.min(this.#startedAt, ...complete.map(({ at }) => at));
    // A bucket that is known in part is left out.
    const isCut = known_since > since;
    this.#first = Math.min(this.#first, isCut ? bucketOf(Date.parse(known_since)) + 1 : bucketOf(earliest));
  }

  #count({ status, tokens_used, latency_ms }: CountedStep, bucket: number): void {
    const counts = this.#countsOf(bucket);
    counts.steps += status === "ok" ? 1 : 0;
    counts.errors += status === "error" ? 1 : 0;
    counts.tokens += tokens_used;
    counts.latency_ms += latency_ms;
  }

  /**
   * Oldest first, without gaps, as far back as known; `latency_ms` is the mean of the bucket's steps. Without the current
   * bucket.
   */
  samples(): Sample[] {
    const end = bucketOf(Date.now());
    const first = Math.max(this.#first, end - BUCKETS);
    return Array.from({ length: Math.max(0, end - first) }, (_, index) => {
      const bucket = first + index;
      const { steps = 0, errors = 0, tokens = 0, latency_ms = 0 } = this.#counts.get(bucket) ?? {};
      const mean = latency_ms / Math.max(1, steps + errors);
      return { at: new Date(bucket * BUCKET_MS).toISOString(), steps, errors, tokens, latency_ms: mean };
    });
  }

  #countsOf(bucket: number): Omit<Sample, "at"> {
    let counts = this.#counts.get(bucket);
    if (!counts) {
      for (const old of this.#counts.keys()) if (old < bucket - BUCKETS) this.#counts.delete(old);
      counts = { steps: 0, errors: 0, tokens: 0, latency_ms: 0 };
      this.#counts.set(bucket, counts);
    }
    return counts;
  }
}

/** Reads a page of a session's steps and moves its backlog to before it; null if the page has more rows than are read at once. */
async function readBack(store: StepSource, backlog: Backlog, since: string): Promise<TimedStep[] | null> {
  const { session_id, iteration } = backlog;
  const min_iteration = Math.max(0, iteration - PAGE + 1);
  const range = { session_id, min_iteration, max_iteration: iteration, since_created_at: since };
  const rows = await store.listSteps({ ...range, limit: MOST_ROWS, offset: 0 });
  if (rows.length === MOST_ROWS) return null;
  // A fork's steps begin with those of its parent.
  const own = rows.filter((step) => step.session_id === session_id);
  const [first] = rows;
  const isWhole = min_iteration > 0 && first?.iteration === min_iteration && own.length === rows.length;
  backlog.iteration = min_iteration - 1;
  backlog.known_since = isWhole ? first.created_at : since;
  return own.map((step) => ({ ...countedOf(step), at: Date.parse(step.created_at) }));
}

/** Without the state, which may be large. */
const countedOf = ({ status, tokens_used, latency_ms }: CountedStep): CountedStep => ({
  status,
  tokens_used,
  latency_ms,
});
