import { Emitter } from "../concurrency/emitter.ts";
import type { Session } from "../domain/session.ts";

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
