import { EverstepError } from "../domain/errors.ts";
import type { CommittedEvent } from "../domain/event.ts";

/** Bytes of events that may wait in memory for one reader, over all that it follows. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;
/** So many may wait whatever their size: one commit brings several, and a row may be larger than all that may wait. */
const LEAST_EVENTS = 8;
/** No more than these may wait, however small they are. */
const MOST_EVENTS = 10_000;

/** What waits in memory for one reader. Whoever holds events for it counts them here. */
export class ReaderBudget {
  readonly #tooSlow: () => void;
  #bytes = 0;
  #events = 0;

  /** `tooSlow` is called when something could not be kept for the reader, who then gets no more. */
  constructor(tooSlow: () => void = () => {}) {
    this.#tooSlow = tooSlow;
  }

  fits(bytes: number): boolean {
    if (this.#events < LEAST_EVENTS) return true;
    return this.#events < MOST_EVENTS && this.#bytes + bytes <= MOST_HELD_BYTES;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    this.#events += 1;
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    this.#events -= 1;
  }

  exceed(): void {
    this.#tooSlow();
  }
}

export const readerTooSlow = (): EverstepError =>
  new EverstepError(
    "reader_too_slow",
    "more happened than may wait in memory for one reader",
    "follow again from the last iteration or message that came",
  );

/** What V8 needs for a value beside a text's characters: its slot, and its header where it has one. */
const VALUE_BYTES = 32;
const measured = new WeakMap<CommittedEvent, number>();

/** About how much memory an event takes. It is measured once, however many readers there are. */
export function eventBytes(event: CommittedEvent): number {
  const known = measured.get(event);
  if (known !== undefined) return known;
  const bytes = bytesOf(event);
  measured.set(event, bytes);
  return bytes;
}

function bytesOf(event: CommittedEvent): number {
  let bytes = 0;
  const rest: unknown[] = [event];
  while (rest.length > 0) {
    const value = rest.pop();
    bytes += VALUE_BYTES;
    if (typeof value === "string") bytes += value.length;
    else if (Array.isArray(value)) for (const item of value) rest.push(item);
    else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) rest.push(item);
  }
  return bytes;
}
