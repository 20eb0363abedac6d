import { Emitter } from "../concurrency/emitter.ts";
import { isLive, type Session } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import { type Chain, type StoredState, storeState, storeWhole } from "./state-delta.ts";
import type { Batch, OwnedSession, Ownership, SessionWrite } from "./store.ts";

/** Where a session stands: its last `ok` iteration, and how many attempts failed. */
export type Position = { iteration: number; error_rows: number };
export type PlannedStep = { step: Step; stored: StoredState; error_number: number | null };

/** A session in memory. `chain` is where its states stand, so that the next step is stored as a difference. */
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
  /** JSON text, where the state cannot be rebuilt from steps: at the start and at the end of a session. */
  context: string | null;
  /** To be called when the write begins, once it is on disk, and when it is over, whatever became of it. */
  begun: () => void;
  committed: () => void;
  ended: () => void;
};

type PlannedBatch = { kind: "planned"; plans: SessionPlan[] } | { kind: "fenced"; session_id: string };

/**
 * Sessions in memory with their owners. Both engines plan here what a batch writes of its sessions: this is where P2, P3 and
 * P5 are kept, for the embedded engine finally, for PostgreSQL as far as this process knows.
 */
export class OwnedSessions {
  protected readonly entries = new Map<string, SessionEntry>();
  /** Which of them goes on next by itself. */
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

  /** Null where it is not in memory or nobody owns it. */
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

  /** A session as it was read with its owner, unless a commit here under the same ownership made it newer meanwhile. */
  add({ session, owner, after_crash }: OwnedSession, chain: Chain | null, error_rows: number): void {
    if (this.entries.get(session.session_id)?.epoch === owner.epoch) return;
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

  /** What each session of a batch writes, with its steps. One that may not be written fences the whole batch. */
  plan(batch: Batch): PlannedBatch {
    const { sessions = [], steps = [] } = batch;
    const [only] = sessions;
    // A step as most are: one session, and nothing to look for.
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

  /** P3, of a session whose owner is right. A database that is asked itself needs no answer here. */
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
        // Nobody else can write a session that is only being created.
        entry.isBeingWritten = write.kind === "update";
      },
      committed: () => {
        // One that was given up meanwhile, and perhaps taken again, is another entry.
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

/** Takes a session from an iteration over its new rows; null where they do not continue it (P2). */
function advance(entry: SessionEntry, from: number, session: Session, steps: Step[]) {
  let { chain, error_rows } = entry;
  let iteration = from;
  const rows: PlannedStep[] = [];
  for (const step of steps) {
    if (step.iteration !== iteration + 1) return null;
    if (step.status === "error") {
      // It stands beside the chain: the next step does not build on it.
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
  // A session that ends leaves its context in its row; the next step, if it ever resumes, is stored whole.
  return { rows, session: { ...session, context }, chain: isLive(session.status) ? chain : null, error_rows };
}

/** The time until which a session waits, in milliseconds; null where it does not wait for any. */
const wakeTimeOf = (session: Session | undefined): number | null =>
  session?.status === "waiting" && session.wake_at !== null ? Date.parse(session.wake_at) : null;

/** What others may do with the index. */
export type Wakes = Pick<WakeIndex, "nextAt" | "takeDue" | "putBack" | "onEarlier">;

/** Entries that may be out of date before all are looked through, beside as many as there are. */
const SLACK = 1000;

/**
 * Which of the sessions in memory goes on next by itself: a heap of times.
 *
 * WAKES-1  The session's row is what counts. An entry whose session no longer waits until that very time is dropped when it comes
 *          up, so that a change costs no search; once most entries may be such, the heap is made anew.
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

  /** A session is in memory, or its row changed; `before` is the row until now. */
  changed(session: Session, before?: Session): void {
    const time = wakeTimeOf(session);
    if (time === null || time === wakeTimeOf(before)) return;
    if (this.#times.length >= this.#lookThroughAt)
      this.#makeAnew(); // WAKES-1
    else this.#push(time, session.session_id);
    if (this.#ids[0] === session.session_id) this.#earlier.emit();
  }

  /** The earliest time, in milliseconds; null where no session waits for one. */
  nextAt(): number | null {
    this.#dropOutdated();
    return this.#times[0] ?? null;
  }

  /** Sessions whose time has come, earliest first. They are not handed out again unless they are put back. */
  takeDue(now_ms: number, limit: number): string[] {
    const due: string[] = [];
    while (due.length < limit) {
      const next = this.nextAt();
      if (next === null || next > now_ms) break;
      due.push(this.#pop());
    }
    return due;
  }

  /** One that was handed out and could not be woken. */
  putBack(session_id: string): void {
    const time = wakeTimeOf(this.#sessions.get(session_id)?.session);
    if (time !== null) this.#push(time, session_id);
  }

  /** Called when the earliest time became an earlier one. */
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
