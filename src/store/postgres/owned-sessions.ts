import { isLive, type Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import { type Chain, type StoredState, storeState, storeWhole } from "../state-chain.ts";
import type { OwnedSession, Ownership, SessionWrite } from "../store.ts";

/** Where a session stands: its last `ok` iteration and how many attempts failed. What comes next is told from it. */
export type Position = { iteration: number; error_rows: number };

type Entry = Position & Ownership & Pick<OwnedSession, "session" | "after_crash"> & { chain: Chain | null };

/** A session's part of a batch, ready to be written, and what to do in memory once it is. */
export type SessionPlan = {
  write: SessionWrite;
  /** The row as readers will see it. */
  session: Session;
  before: Position;
  after: Position;
  base_iteration: number | null;
  /** The row as its last commit left it. */
  last: Session;
  /** JSON text, where the state cannot be rebuilt from steps: at the start and at the end of a session. */
  context: string | null;
  steps: { step: Step; stored: StoredState; error_number: number | null }[];
  committed: () => void;
};

/**
 * The sessions that this process owns as far as it knows, with where their states stand, so that the next step is stored
 * as a difference. Whether they are still owned is for the database to say.
 */
export class OwnedSessions {
  readonly #entries = new Map<string, Entry>();

  get ids(): IterableIterator<string> {
    return this.#entries.keys();
  }

  get size(): number {
    return this.#entries.size;
  }

  add({ session, owner, after_crash }: OwnedSession, chain: Chain | null, error_rows: number): void {
    const { session_id, iteration } = session;
    // What was read is older than what was committed here meanwhile.
    if (this.#entries.get(session_id)?.epoch === owner.epoch) return;
    this.#entries.set(session_id, { ...owner, after_crash, chain, session, iteration, error_rows });
  }

  get(session_id: string): OwnedSession | null {
    const entry = this.#entries.get(session_id);
    if (!entry) return null;
    const { session, worker, epoch, revision, after_crash } = entry;
    return { session, owner: { worker, epoch, revision }, after_crash };
  }

  forget(session_ids: Iterable<string>): void {
    for (const id of session_ids) this.#entries.delete(id);
  }

  randomSome(count: number): string[] {
    const ids = [...this.ids];
    for (let at = ids.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1));
      [ids[at], ids[other]] = [ids[other] as string, ids[at] as string];
    }
    return ids.slice(0, count);
  }

  /** It is not owned that way any more; what was claimed or written since then stays. */
  lost({ session, owner }: Pick<OwnedSession, "session" | "owner">): void {
    const entry = this.#entries.get(session.session_id);
    if (entry?.epoch === owner.epoch && entry.revision === owner.revision) this.#entries.delete(session.session_id);
  }

  isOwnedBy(session_id: string, worker: string): boolean {
    return this.#entries.get(session_id)?.worker === worker;
  }

  ownedBy(worker: string): string[] {
    return [...this.#entries].filter(([, entry]) => entry.worker === worker).map(([id]) => id);
  }

  /** Null means fenced. */
  plan(write: SessionWrite, steps: Step[]): SessionPlan | null {
    const { session } = write;
    if (write.kind === "create") {
      const start = { iteration: session.parent_iteration ?? -1, error_rows: 0 };
      const owner = { worker: write.worker ?? "", epoch: write.worker === null ? 0 : 1, revision: 0 };
      return this.#advance(write, { ...start, ...owner, after_crash: false, chain: null, session }, steps);
    }
    const entry = this.#entries.get(session.session_id);
    const { worker, epoch, revision } = write.owner;
    if (entry?.worker !== worker || entry.epoch !== epoch || entry.revision !== revision) return null; // P3
    return this.#advance(write, entry, steps);
  }

  /** Takes a session from where it stands over its new rows; null where they do not continue it (P2). */
  #advance(write: SessionWrite, from: Entry, steps: Step[]): SessionPlan | null {
    const { session } = write;
    let { chain, iteration, error_rows } = from;
    const rows: SessionPlan["steps"] = [];
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
    const lives = isLive(session.status);
    // P5: the context follows the steps, whatever the row says.
    const context = chain ? chain.state : from.session.context;
    const kept = lives ? chain : null;
    const row = { ...session, context };
    const revision = write.kind === "create" ? 0 : from.revision + 1;
    const after = { ...from, revision, after_crash: false, iteration, error_rows, chain: kept, session: row };
    return {
      write,
      session: row,
      before: { iteration: from.iteration, error_rows: from.error_rows },
      after: { iteration, error_rows },
      base_iteration: kept?.base_iteration ?? null,
      last: from.session,
      context: !lives || (write.kind === "create" && !kept) ? JSON.stringify(context) : null,
      steps: rows,
      committed: () => {
        const known = this.#entries.get(session.session_id);
        const isOurs = write.kind === "create" ? write.worker !== null && !known : known === from;
        if (!isOurs) return; // It was given up meanwhile, and perhaps taken again.
        if (lives) this.#entries.set(session.session_id, after);
        else this.#entries.delete(session.session_id);
      },
    };
  }
}
