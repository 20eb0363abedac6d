import type { MessageContent } from "../outgoing/content.ts";

/** The progress of an answer: an edit of the message sent under this transaction id. */
export type Preview = {
  room_id: string;
  transaction_id: string;
  /** Whether there is more text than was shown last. */
  isNew: () => boolean;
  /** The content to show. */
  content: () => MessageContent;
};

const FIRST_INTERVAL_MS = 1000;
const GROWTH = 1.5;
const LONGEST_INTERVAL_MS = 5000;
const LONGEST_WHEN_LIMITED_MS = 30_000;

/**
 * Schedules previews of answers. Each edit counts towards the homeserver's rate limit like a message, so previews become
 * rarer the longer an answer takes, and much rarer once the homeserver has complained.
 */
export class Previews {
  readonly #offered = new Map<string, Preview>();
  #interval_ms = FIRST_INTERVAL_MS;
  #longest_ms = LONGEST_INTERVAL_MS;
  #lastAt = 0;

  offer(preview: Preview): void {
    // The first preview resets the pace.
    if (this.#offered.size === 0) this.#interval_ms = FIRST_INTERVAL_MS;
    if (!this.#offered.has(preview.room_id)) this.#lastAt = Date.now();
    this.#offered.set(preview.room_id, preview);
  }

  forget(room_id: string): void {
    this.#offered.delete(room_id);
  }

  /** A preview to show now, or the milliseconds until the next, or none. */
  due(busyRooms: ReadonlySet<string>): Preview | number | "none" {
    const [next] = [...this.#offered.values()].filter(({ room_id, isNew }) => !busyRooms.has(room_id) && isNew());
    if (!next) return "none";
    const wait_ms = this.#lastAt + this.#interval_ms - Date.now();
    if (wait_ms > 0) return wait_ms;
    this.#lastAt = Date.now();
    // Move it behind the others.
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
