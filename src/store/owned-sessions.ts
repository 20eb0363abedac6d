import { Emitter } from "../concurrency/emitter.ts";
import { isLive, type Session } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import { eventOf, type WebhookEvent } from "../domain/webhook.ts";
import { type Chain, type StoredState, storeState, storeWhole } from "./state-delta.ts";
import type { Batch, OwnedSession, Ownership, SessionWrite } from "./store.ts";

/** Where a session stands: its last `ok` iteration, and how many attempts failed. */
export type Position = { iteration: number; error_rows: number };
export type PlannedStep = { step: Step; stored: StoredState; error_number: number | null };

/** A session in memory. The next step's state is stored as a difference from `chain`. */
export type SessionEntry = {
  session: Session;
  chain: Chain | null;
  error_rows: number;
  worker: string | null;
  epoch: number;
  revision: number;
  after_crash: boolean;
  isBeingWritten: boolean;
};

/** A session's part of a batch, ready to be written. */
export type SessionPlan = {
  write: SessionWrite;
  /** The row as readers will see it. */
  session: Session;
  /** The row as its last commit left it. */
  last: Session;
  before: Position;
  after: Position;
  steps: PlannedStep[];
  base_iteration: number | null;
  /** JSON text, if the state cannot be rebuilt from steps: at the start and at the end of a session. */
  context: string | null;
  /** To be called when the write starts, once it is on disk, and when it is over, successful or not. */
  begun: () => void;
  committed: () => void;
  ended: () => void;
};

/** HOOKS-1. The event that the write makes, if any. */
export const eventOfPlan = ({ write, last, session }: SessionPlan): WebhookEvent | null =>
  eventOf(write.kind === "create" ? null : last, session);

type PlannedBatch = { kind: "planned"; plans: SessionPlan[] } | { kind: "fenced"; session_id: string };

/**
 * Sessions in memory with their owners. Here both engines plan what a batch writes of its sessions. For the embedded engine this is
 * what keeps P2, P3 and P5; for PostgreSQL it is a first check, and the database has the last word.
 */
export class OwnedSessions {
  protected readonly entries = new Map<string, SessionEntry>();
  /** When waiting sessions wake. */
  readonly wakes = new WakeIndex(this.entries);

  get ids(): string[] {
    return [...this.entries.keys()];
  }

  get size(): number {
    return this.entries.size;
  }

  all(): Session[] {
    return [...this.entries.values()].map(({ session }) => session);
  }

  cached(session_id: string): Session | null {
    return this.entries.get(session_id)?.session ?? null;
  }

  /** Null if it is not in memory or has no owner. */
  get(session_id: string): OwnedSession | null {
    const entry = this.entries.get(session_id);
    if (!entry || entry.worker === null) return null;
    const { session, worker, epoch, revision, after_crash } = entry;
    return { session, owner: { worker, epoch, revision }, after_crash };
  }

  isOwnedBy(session_id: string, worker: string): boolean {
    return this.entries.get(session_id)?.worker === worker;
  }

  ownedBy(worker: string): string[] {
    return [...this.entries].filter(([, entry]) => entry.worker === worker).map(([id]) => id);
  }

  /** Adds a session that was read with its owner, unless it was committed or claimed again since and is newer here. */
  add({ session, owner, after_crash }: OwnedSession, chain: Chain | null, error_rows: number): void {
    if ((this.entries.get(session.session_id)?.epoch ?? -1) >= owner.epoch) return;
    this.entries.set(session.session_id, {
      session,
      chain,
      error_rows,
      ...owner,
      after_crash,
      isBeingWritten: false,
    });
    this.wakes.changed(session);
  }

  forget(session_ids: Iterable<string>): void {
    for (const id of session_ids) this.entries.delete(id);
  }

  /** Forgets a session that was fenced, unless it was claimed or written since. */
  forgetFenced({ session, owner }: Pick<OwnedSession, "session" | "owner">): void {
    const entry = this.entries.get(session.session_id);
    if (entry?.epoch === owner.epoch && entry.revision === owner.revision) this.entries.delete(session.session_id);
  }

  /** Plans what each session of a batch writes, with its steps. One that may not be written fences the whole batch. */
  plan(batch: Batch): PlannedBatch {
    const { sessions = [], steps = [] } = batch;
    const [only] = sessions;
    // The usual case: steps of one session.
    if (only && sessions.length === 1 && steps.every(({ session_id }) => session_id === only.session.session_id)) {
      const plan = this.#planSession(only, steps);
      return plan ? { kind: "planned", plans: [plan] } : { kind: "fenced", session_id: only.session.session_id };
    }
    const stepsOf = Map.groupBy(steps, ({ session_id }) => session_id);
    const plans: SessionPlan[] = [];
    for (const write of sessions) {
      const { session_id } = write.session;
      const plan = this.#planSession(write, stepsOf.get(session_id) ?? []);
      if (!plan) return { kind: "fenced", session_id };
      plans.push(plan);
      stepsOf.delete(session_id);
    }
    if (stepsOf.size > 0)
      throw new TypeError(`steps of session ${stepsOf.keys().next().value} were given without the session`);
    return { kind: "planned", plans };
  }

  /** P3, for a session with the right owner. Engines whose database checks this need not override it. */
  protected mayBeWritten(_entry: SessionEntry): boolean {
    return true;
  }

  /** A session was created. */
  protected created(entry: SessionEntry): void {
    const { session_id } = entry.session;
    if (entry.worker !== null && !this.entries.has(session_id)) this.entries.set(session_id, entry);
  }

  /** A commit ended a session, and with it the ownership. */
  protected ended(session_id: string): void {
    this.entries.delete(session_id);
  }

  #planSession(write: SessionWrite, steps: Step[]): SessionPlan | null {
    const { session } = write;
    const entry = write.kind === "create" ? newEntry(write) : this.#ownedEntry(session.session_id, write.owner);
    if (!entry) return null;
    const from = write.kind === "create" ? (session.parent_iteration ?? -1) : entry.session.iteration;
    const next = advance(entry, from, session, steps);
    if (!next) return null;
    const revision = write.kind === "create" ? 0 : entry.revision + 1;
    const isEnded = !isLive(session.status);
    return {
      write,
      session: next.session,
      last: entry.session,
      before: { iteration: from, error_rows: entry.error_rows },
      after: { iteration: session.iteration, error_rows: next.error_rows },
      steps: next.rows,
      base_iteration: next.chain?.base_iteration ?? null,
      context: isEnded || (write.kind === "create" && !next.chain) ? JSON.stringify(next.session.context) : null,
      begun: () => {
        // Nobody else can write a session that is being created.
        entry.isBeingWritten = write.kind === "update";
      },
      committed: () => {
        // If it was released meanwhile, and perhaps claimed again, there is another entry.
        if (write.kind === "update" && this.entries.get(session.session_id) !== entry) return;
        const before = write.kind === "create" ? undefined : entry.session;
        entry.session = next.session;
        entry.chain = next.chain;
        entry.error_rows = next.error_rows;
        entry.revision = revision;
        entry.after_crash = false;
        if (isEnded) this.ended(session.session_id);
        else if (write.kind === "create") this.created(entry);
        if (this.entries.get(session.session_id) === entry) this.wakes.changed(entry.session, before);
      },
      ended: () => {
        entry.isBeingWritten = false;
      },
    };
  }

  /** P3. */
  #ownedEntry(session_id: string, { worker, epoch, revision }: Ownership): SessionEntry | null {
    const entry = this.entries.get(session_id);
    const isOwned = entry?.worker === worker && entry.epoch === epoch && entry.revision === revision;
    return isOwned && this.mayBeWritten(entry) ? entry : null;
  }
}

const newEntry = ({ session, worker }: { session: Session; worker: string | null }): SessionEntry => ({
  session,
  chain: null,
  error_rows: 0,
  worker,
  epoch: worker === null ? 0 : 1,
  revision: 0,
  after_crash: false,
  isBeingWritten: false,
});

/** Advances a session over its new rows; null if they do not continue it (P2). */
function advance(entry: SessionEntry, from: number, session: Session, steps: Step[]) {
  let { chain, error_rows } = entry;
  let iteration = from;
  const rows: PlannedStep[] = [];
  for (const step of steps) {
    if (step.iteration !== iteration + 1) return null;
    if (step.status === "error") {
      // Not part of the chain: the next step does not build on it.
      const { stored } = storeWhole(step.state, step.iteration);
      rows.push({ step, stored, error_number: error_rows });
      error_rows += 1;
      continue;
    }
    const next = storeState(chain, step.state, step.iteration);
    chain = next.chain;
    iteration = step.iteration;
    rows.push({ step, stored: next.stored, error_number: null });
  }
  if (session.iteration !== iteration) return null;
  // P5: the context follows the steps, whatever the row says.
  const context = chain ? chain.state : entry.session.context;
  // A session that ends stores its context in its row; if it is resumed, its next step is stored whole.
  return { rows, session: { ...session, context }, chain: isLive(session.status) ? chain : null, error_rows };
}

/** When a waiting session wakes, in milliseconds; null if at no particular time. */
const wakeTimeOf = (session: Session | undefined): number | null =>
  session?.status === "waiting" && session.wake_at !== null ? Date.parse(session.wake_at) : null;

/** The part of the index that other modules use. */
export type Wakes = Pick<WakeIndex, "nextAt" | "takeDue" | "putBack" | "onEarlier">;

/** Outdated entries that are tolerated before the heap is rebuilt, besides as many as there are valid ones. */
const SLACK = 1000;

/**
 * A heap of the times at which sessions in memory wake.
 *
 * WAKES-1  The session's row is authoritative. An entry whose session no longer waits until that time is dropped when it reaches the
 *          top, so that a change needs no search; once most entries may be outdated, the heap is rebuilt.
 */
export class WakeIndex {
  readonly #sessions: ReadonlyMap<string, { session: Session }>;
  readonly #earlier = new Emitter();
  #times: number[] = [];
  #ids: string[] = [];
  #lookThroughAt = SLACK;

  constructor(sessions: ReadonlyMap<string, { session: Session }>) {
    this.#sessions = sessions;
  }

  /** A session was added, or its row changed; `before` is the previous row. */
  changed(session: Session, before?: Session): void {
    const time = wakeTimeOf(session);
    if (time === null || time === wakeTimeOf(before)) return;
    if (this.#times.length >= this.#lookThroughAt)
      this.#makeAnew(); // WAKES-1
    else this.#push(time, session.session_id);
    if (this.#ids[0] === session.session_id) this.#earlier.emit();
  }

  /** The earliest time, in milliseconds; null if no session waits for one. */
  nextAt(): number | null {
    this.#dropOutdated();
    return this.#times[0] ?? null;
  }

  /** Takes out sessions that are due, earliest first. They come again only if they are put back. */
  takeDue(now_ms: number, limit: number): string[] {
    const due: string[] = [];
    while (due.length < limit) {
      const next = this.nextAt();
      if (next === null || next > now_ms) break;
      due.push(this.#pop());
    }
    return due;
  }

  /** Puts back a session that could not be woken. */
  putBack(session_id: string): void {
    const time = wakeTimeOf(this.#sessions.get(session_id)?.session);
    if (time !== null) this.#push(time, session_id);
  }

  /** The listener is called when the earliest time becomes earlier. */
  onEarlier(listener: () => void): () => void {
    return this.#earlier.listen(listener);
  }

  /** WAKES-1. */
  #dropOutdated(): void {
    for (let [id] = this.#ids; id !== undefined; [id] = this.#ids) {
      if (wakeTimeOf(this.#sessions.get(id)?.session) === this.#times[0]) return;
      this.#pop();
    }
  }

  #makeAnew(): void {
    this.#times = [];
    this.#ids = [];
    for (const [id, { session }] of this.#sessions) {
      const time = wakeTimeOf(session);
      if (time !== null) this.#push(time, id);
    }
    this.#lookThroughAt = 2 * this.#times.length + SLACK;
  }

  #push(time: number, id: string): void {
    let at = this.#times.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if ((this.#times[above] as number) <= time) break;
      this.#move(above, at);
      at = above;
    }
    this.#times[at] = time;
    this.#ids[at] = id;
  }

  #pop(): string {
    const first = this.#ids[0] as string;
    const [time, id] = [this.#times.pop() as number, this.#ids.pop() as string];
    const { length } = this.#times;
    if (length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= length) break;
      if (below + 1 < length && (this.#times[below + 1] as number) < (this.#times[below] as number)) below += 1;
      if ((this.#times[below] as number) >= time) break;
      this.#move(below, at);
      at = below;
    }
    this.#times[at] = time;
    this.#ids[at] = id;
    return first;
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from] as number;
    this.#ids[to] = this.#ids[from] as string;
  }
}
