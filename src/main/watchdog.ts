import { Worker } from "node:worker_threads";

/** Sessions with a running step, in shared memory: the length of the id in bytes, then the id. */
const SLOTS = 512;
export const SLOT_BYTES = 256;
const TURN_MS = 200;
const RESOURCES = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 32 };

export type WatchdogOrder = {
  limit_ms: number;
  /** Whether to log nothing. */
  is_silent: boolean;
  /** Increases while the program's main thread is responsive. */
  turns: Int32Array<SharedArrayBuffer>;
  slots: Uint8Array<SharedArrayBuffer>;
};

/**
 * Ends the process when a step has blocked its thread for too long: nothing else runs then, no request is answered, and nothing
 * in that thread can notice. A separate thread notices, logs the sessions with running steps, and kills the process, so that
 * its supervisor restarts it.
 */
export class Watchdog {
  readonly #slots: Uint8Array<SharedArrayBuffer>;
  readonly #free = Array.from({ length: SLOTS }, (_, at) => at);
  readonly #encoder = new TextEncoder();
  readonly #thread: Worker;
  readonly #turning: NodeJS.Timeout;

  constructor({ limit_ms, is_silent }: Pick<WatchdogOrder, "limit_ms" | "is_silent">) {
    const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    this.#slots = new Uint8Array(new SharedArrayBuffer(SLOTS * SLOT_BYTES));
    const workerData: WatchdogOrder = { limit_ms, is_silent, turns, slots: this.#slots };
    this.#thread = new Worker(new URL("./watchdog-thread.ts", import.meta.url), {
      workerData,
      resourceLimits: RESOURCES,
    });
    this.#thread.unref();
    this.#turning = setInterval(() => Atomics.add(turns, 0, 1), TURN_MS).unref();
  }

  /** Called when a step of the session begins; the returned function is called at its end. */
  readonly watch = (session_id: string): (() => void) => {
    const slot = this.#free.pop();
    if (slot === undefined) return () => {};
    const start = slot * SLOT_BYTES;
    const { written } = this.#encoder.encodeInto(session_id, this.#slots.subarray(start + 1, start + SLOT_BYTES));
    this.#slots[start] = written;
    return () => {
      this.#slots[start] = 0;
      this.#free.push(slot);
    };
  };

  async stop(): Promise<void> {
    clearInterval(this.#turning);
    await this.#thread.terminate();
  }
}
