import { isLive, type Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import { type Chain, storeState, storeWhole } from "../state-chain.ts";
import type { OwnedSession, Ownership, SessionWrite } from "../store.ts";
import { type PackedRow, pack } from "./packed-rows.ts";
import type { WireSession } from "./wire.ts";

type Entry = {
  session: Session;
  chain: Chain | null;
  error_rows: number;
  worker: string | null;
  epoch: number;
  after_crash: boolean;
  /** Counts the writes since the session is in memory: an older one's epoch is not valid any more. */
  revision: number;
  isBeingWritten: boolean;
};

export type ReadSession = { session: Session; chain: Chain | null; error_rows: number };

/** What a session's part of a batch writes, and what to do in memory before, once it is written, and whatever became of it. */
export type SessionPlan = {
  wire: WireSession;
  steps: PackedRow[];
  begun: () => void;
  committed: () => void;
  ended: () => void;
};

const NEVER_WRITTEN = { revision: 0, isBeingWritten: false };

/**
 * Live sessions in memory with their owners: where the store's promises P2, P3 and P5 are kept for the embedded engine.
 */
export class LiveSessions {
  readonly #entries = new Map<string, Entry>();
  /** Live sessions without an owner, in the order they may be claimed. */
  readonly #free = new Set<string>();
  /** Reads of sessions that are not in memory, with whether one ended here since its read began. */
  readonly #reads = new Set<{ session_id: string; isOutdated: boolean }>();
  /** Never the same twice, so that an owner of long ago cannot pass for the one of today. */
  #lastEpoch = 1;

  get(session_id: string): Session | undefined {
    return this.#entries.get(session_id)?.session;
  }

  all(): Session[] {
    return [...this.#entries.values()].map(({ session }) => session);
  }

  load({ session, chain, error_rows }: ReadSession, after_crash = false): void {
    const entry = { session, chain, error_rows, worker: null, epoch: 0, after_crash, ...NEVER_WRITTEN };
    this.#entries.set(session.session_id, entry);
    if (isLive(session.status)) this.#free.add(session.session_id);
  }

  /**
   * Takes a session that is not in memory as `read` finds it. One that was taken up and ended again meanwhile is read once
   * more: a write made from what it was before would be lost (P3).
   */
  async loadResting(session_id: string, read: () => Promise<ReadSession | undefined>): Promise<void> {
    const reading = { session_id, isOutdated: false };
    this.#reads.add(reading);
    try {
      while (!this.#entries.has(session_id)) {
        reading.isOutdated = false;
        const loaded = await read();
        if (!loaded) return;
        if (!reading.isOutdated && !this.#entries.has(session_id)) this.load(loaded);
      }
    } finally {
      this.#reads.delete(reading);
    }
  }

  claimFree(worker: string, limit: number): OwnedSession[] {
    const free = [...this.#free].map((id) => (this.#entries.get(id) as Entry).session);
    const oldest = free
      .sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0))
      .slice(0, limit);
    return oldest.map(({ session_id }) => this.claim(session_id, worker) as OwnedSession);
  }

  /** Null where the session is not in memory or has another owner. */
  claim(session_id: string, worker: string): OwnedSession | null {
    const entry = this.#entries.get(session_id);
    if (!entry || (entry.worker !== null && entry.worker !== worker)) return null;
    if (entry.worker === null) {
      entry.worker = worker;
      entry.epoch = ++this.#lastEpoch;
      this.#free.delete(session_id);
    }
    const { session, epoch, revision, after_crash } = entry;
    return { session, owner: { worker, epoch, revision }, after_crash };
  }

  ownedBy(worker: string): string[] {
    return [...this.#entries].filter(([, entry]) => entry.worker === worker).map(([id]) => id);
  }

  /** From now on the owner's commits are refused; `free` makes the session claimable. */
  fence(session_id: string, worker: string): boolean {
    const entry = this.#entries.get(session_id);
    if (entry?.worker !== worker) return false;
    entry.epoch = ++this.#lastEpoch;
    return true;
  }

  free(session_id: string): void {
    const entry = this.#entries.get(session_id);
    if (!entry) return;
    entry.worker = null;
    entry.after_crash = false;
    if (isLive(entry.session.status)) this.#free.add(session_id);
    else this.#entries.delete(session_id);
  }

  /** Null means fenced. */
  plan(write: SessionWrite, steps: Step[]): SessionPlan | null {
    return write.kind === "create"
      ? this.#planCreate(write.session, write.worker, steps)
      : this.#planUpdate(write.session, write.owner, steps);
  }

  #planCreate(session: Session, worker: string | null, steps: Step[]): SessionPlan | null {
    const epoch = worker === null ? 0 : 1;
    const entry: Entry = { session, chain: null, error_rows: 0, worker, epoch, after_crash: false, ...NEVER_WRITTEN };
    const start = session.parent_iteration ?? -1;
    const next = advance(entry, start, session, steps);
    if (!next) return null;
    const wire = {
      create: true,
      packed: next.packed,
      params: JSON.stringify(session.params),
      context: JSON.stringify(session.context),
    };
    const committed = () => this.#put({ ...entry, ...next.entry });
    return { wire, steps: next.steps, begun: () => {}, committed, ended: () => {} };
  }

  #planUpdate(session: Session, owner: Ownership, steps: Step[]): SessionPlan | null {
    const entry = this.#entries.get(session.session_id);
    if (!entry || entry.worker !== owner.worker || entry.epoch !== owner.epoch) return null; // P3
    if (entry.revision !== owner.revision || entry.isBeingWritten) return null; // P3
    const next = advance(entry, entry.session.iteration, session, steps);
    if (!next) return null;
    const status_changed = entry.session.status !== session.status;
    const wire: WireSession = { create: false, packed: next.packed, status_changed };
    if (!isLive(session.status)) wire.context = JSON.stringify(next.entry.session.context);
    return {
      wire,
      steps: next.steps,
      begun: () => {
        entry.isBeingWritten = true;
      },
      committed: () => this.#put(Object.assign(entry, next.entry, { revision: owner.revision + 1 })),
      ended: () => {
        entry.isBeingWritten = false;
      },
    };
  }

  #put(entry: Entry): void {
    const { session_id, status } = entry.session;
    if (!isLive(status)) {
      this.#entries.delete(session_id);
      this.#free.delete(session_id);
      for (const reading of this.#reads) reading.isOutdated ||= reading.session_id === session_id;
      return;
    }
    this.#entries.set(session_id, entry);
    if (entry.worker === null) this.#free.add(session_id);
  }
}

/** Takes a session from one iteration to the next rows; null where they do not continue it (P2). */
function advance(entry: Entry, from: number, session: Session, steps: Step[]) {
  let { chain, error_rows } = entry;
  let iteration = from;
  const rows: PackedRow[] = [];
  for (const step of steps) {
    if (step.iteration !== iteration + 1) return null;
    if (step.status === "error") {
      error_rows += 1;
      rows.push(pack("agent_steps", { ...step, ...storeWhole(step.state, step.iteration).stored }));
      continue;
    }
    const next = storeState(chain, step.state, step.iteration);
    chain = next.chain;
    iteration = step.iteration;
    rows.push(pack("agent_steps", { ...step, ...next.stored }));
  }
  if (session.iteration !== iteration) return null;
  // P5: the context follows the steps, whatever the row says.
  const context = chain ? chain.state : entry.session.context;
  // A session that ends leaves its context as a document; the next step, if it ever resumes, is stored whole.
  const keptChain = isLive(session.status) ? chain : null;
  const row = { ...session, context };
  const packed = pack("agent_state", { ...row, base_iteration: keptChain?.base_iteration ?? null, error_rows });
  return { packed, steps: rows, entry: { session: row, chain: keptChain, error_rows, after_crash: false } };
}
