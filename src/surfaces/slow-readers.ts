import { readerTooSlow } from "../store/follow.ts";

/** The most bytes buffered for a client before sending pauses. */
export const MOST_BUFFERED = 1024 * 1024;
/** The most bytes buffered for a client that keeps sending without reading the responses; then it is dropped. */
const MOST_UNREAD = 16 * MOST_BUFFERED;
const DRAIN_CHECK_MS = 50;

/** A client that receives events, over any transport. */
export type Reader = {
  /** Bytes sent that are still buffered in this process. */
  buffered(): number;
  /** Grows whenever buffered bytes have left. */
  delivered(): number;
  /** Tells the client why, if it listens, and closes its connection. */
  drop(reason: string): void;
};

/** Waits until the client has read most of what was sent, or is gone. Returns false if that takes too long. */
export async function drained(
  reader: Reader,
  gone: AbortSignal,
  limit_ms = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  for (let waited = 0; !gone.aborted && reader.buffered() > MOST_BUFFERED; waited += DRAIN_CHECK_MS) {
    if (waited > limit_ms) return false;
    await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS));
  }
  return true;
}

/**
 * Drops clients that do not read.
 *
 * READER-1  A client with buffered data to which nothing could be delivered for `stall_ms` is dropped, whatever it sends
 *           meanwhile: an unsolicited pong proves nothing.
 * READER-2  Buffers are bounded: by `drained` for events, and here for responses.
 */
export class SlowReaders {
  readonly #stall_ms: number;
  readonly #progress = new Map<Reader, { delivered: number; at: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor(stall_ms: number) {
    this.#stall_ms = stall_ms;
    this.#timer = setInterval(() => this.#sweep(), stall_ms / 4).unref();
  }

  watch(reader: Reader): void {
    this.#progress.set(reader, { delivered: reader.delivered(), at: performance.now() });
  }

  unwatch(reader: Reader): void {
    this.#progress.delete(reader);
  }

  /** Call before answering a client. If it returns false, the client has been dropped. */
  mayAnswer(reader: Reader, most_unread = MOST_UNREAD): boolean {
    if (reader.buffered() <= most_unread) return true;
    this.drop(reader);
    return false;
  }

  drop(reader: Reader): void {
    if (this.#progress.delete(reader)) reader.drop(readerTooSlow().message);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#progress.clear();
  }

  #sweep(): void {
    const now = performance.now();
    for (const [reader, last] of this.#progress) {
      const delivered = reader.delivered();
      if (delivered !== last.delivered || reader.buffered() === 0) this.#progress.set(reader, { delivered, at: now });
      else if (now - last.at > this.#stall_ms) this.drop(reader);
    }
  }
}
