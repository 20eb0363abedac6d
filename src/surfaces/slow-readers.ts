import { readerTooSlow } from "../store/follow.ts";

/** Bytes that may wait in a client's connection before the server stops reading on for it. */
export const MOST_BUFFERED = 1024 * 1024;
/** Bytes that wait in a connection whose client sends on and on and does not read the answers, before it is dropped. */
const MOST_UNREAD = 16 * MOST_BUFFERED;
const DRAIN_CHECK_MS = 50;

/** A client that is sent events, over whatever it is connected by. */
export type Reader = {
  /** Bytes that were sent and wait in this process. */
  buffered(): number;
  /** Grows whenever some of them have left. */
  delivered(): number;
  /** Tells the client why, as far as it listens, and closes its connection at once if it does not. */
  drop(reason: string): void;
};

/** Waits until the client has read most of what it was sent, or is gone. Answers false where that takes longer than it may. */
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
 * Drops the clients that do not read.
 *
 * READER-1  One for whom something waits, and to whom nothing could be delivered for `stall_ms`, is dropped, whatever it sends
 *           meanwhile: a pong that nobody asked for proves nothing.
 * READER-2  What waits in a connection is bounded: by `drained` for events, and here for answers to what a client sends.
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

  /** To be asked before a client is answered. One that is told no is gone. */
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
