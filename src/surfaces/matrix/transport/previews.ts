import type { MessageContent } from "../outgoing/content.ts";

/** How far an answer is: an edit of the message that was sent under this transaction id. */
export type Preview = {
  room_id: string;
  transaction_id: string;
  /** Whether there is more than was shown last. */
  isNew: () => boolean;
  /** What to show when its turn has come. */
  content: () => MessageContent;
};

const FIRST_INTERVAL_MS = 1000;
const GROWTH = 1.5;
const LONGEST_INTERVAL_MS = 5000;
const LONGEST_WHEN_LIMITED_MS = 30_000;

/**
 * When to show how far answers are. Each edit counts against the homeserver's limit as a message does, so they become
 * rarer the longer an answer takes, and much rarer once the homeserver complained.
 */
export class Previews {
  readonly #offered = new Map<string, Preview>();
  #interval_ms = FIRST_INTERVAL_MS;
  #longest_ms = LONGEST_INTERVAL_MS;
  #lastAt = 0;

  offer(preview: Preview): void {
    // A room begins to show an answer: the pace begins anew.
    if (this.#offered.size === 0) this.#interval_ms = FIRST_INTERVAL_MS;
    if (!this.#offered.has(preview.room_id)) this.#lastAt = Date.now();
    this.#offered.set(preview.room_id, preview);
  }

  forget(room_id: string): void {
    this.#offered.delete(room_id);
  }

  /** One to show now, or the milliseconds until then, or none. */
  due(busyRooms: ReadonlySet<string>): Preview | number | "none" {
    const [next] = [...this.#offered.values()].filter(({ room_id, isNew }) => !busyRooms.has(room_id) && isNew());
    if (!next) return "none";
    const wait_ms = this.#lastAt + this.#interval_ms - Date.now();
    if (wait_ms > 0) return wait_ms;
    this.#lastAt = Date.now();
    // The others get their turn.
    this.#offered.delete(next.room_id);
    this.#offered.set(next.room_id, next);
    return next;
  }

  shown(): void {
    this.#interval_ms = Math.min(this.#longest_ms, this.#interval_ms * GROWTH);
  }

  slowDown(): void {
    this.#longest_ms = LONGEST_WHEN_LIMITED_MS;
    this.#interval_ms = Math.min(LONGEST_WHEN_LIMITED_MS, this.#interval_ms * 3);
  }
}
