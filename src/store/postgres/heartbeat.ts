import { getCompileCacheDir } from "node:module";
import { Worker } from "node:worker_threads";
import type { Failure } from "./server-errors.ts";

export type HeartbeatOrder = {
  url: string;
  node_no: number;
  lock: number;
  name: string;
  lease_ms: number;
  /** Counts up while the program's own thread turns. */
  turns: Int32Array<SharedArrayBuffer>;
  /** Where this program keeps what it compiled, if it does: the thread does the same. */
  compile_cache: string | undefined;
};
export type HeartbeatReport =
  | { kind: "joined" }
  /** Before it joined: the first connection's failure. */
  | { kind: "failed"; error: Failure & { message: string } }
  | { kind: "taken_for_dead" }
  | { kind: "stopped" };

const TURN_MS = 200;
const AGAIN_MS = 100;
/** How long the end waits for a renewal that is under way, in milliseconds. */
const LAST_RENEWAL_MS = 2000;
/** One statement a second needs little. */
const RESOURCES = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/**
 * Says that this process lives, from a thread of its own and over a connection of its own: a step that computes for longer than the
 * lease holds up everything else in the process, but does not lose it its sessions.
 *
 * HEARTBEAT-1  The process is in `workers` while the thread holds the advisory lock, which ends with its connection, and renews the
 *              lease.
 * HEARTBEAT-2  An orderly end stops the renewals first, lets the process take itself off the list, and gives up the lock last: what
 *              is released must not look like what a dead process left.
 */
export class Heartbeat {
  readonly #order: HeartbeatOrder;
  readonly #onTakenForDead: () => void;
  readonly #joined = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #turning: NodeJS.Timeout;
  #thread: Worker | undefined;
  #isClosing = false;

  constructor(order: Omit<HeartbeatOrder, "turns" | "compile_cache">, onTakenForDead: () => void) {
    const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    this.#order = { ...order, turns, compile_cache: getCompileCacheDir() };
    this.#onTakenForDead = onTakenForDead;
    this.#turning = setInterval(() => Atomics.add(turns, 0, 1), TURN_MS).unref();
    this.#joined.promise.catch(() => {}); // Whoever waits for it is told.
  }

  /** Throws where the first connection fails; from then on it comes back by itself. */
  start(): Promise<void> {
    this.#spawn();
    return this.#joined.promise;
  }

  /** HEARTBEAT-2. */
  async stopRenewing(): Promise<void> {
    this.#isClosing = true;
    if (!this.#thread) return;
    this.#thread.postMessage("stop");
    const late = setTimeout(() => this.#stopped.resolve(), LAST_RENEWAL_MS);
    await this.#stopped.promise;
    clearTimeout(late);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#turning);
    await this.#thread?.terminate();
  }

  #spawn(): void {
    const thread = new Worker(new URL("./heartbeat-thread.ts", import.meta.url), {
      workerData: this.#order,
      resourceLimits: RESOURCES,
    });
    this.#thread = thread;
    thread.on("message", (report: HeartbeatReport) => this.#heard(report));
    thread.on("error", (error: Error) => {
      process.emitWarning(error);
      this.#joined.reject(error);
    });
    thread.on("exit", () => {
      this.#stopped.resolve();
      if (!this.#isClosing) setTimeout(() => !this.#isClosing && this.#spawn(), AGAIN_MS);
    });
  }

  #heard(report: HeartbeatReport): void {
    switch (report.kind) {
      case "joined":
        return this.#joined.resolve();
      case "failed":
        this.#isClosing = true;
        return this.#joined.reject(Object.assign(new Error(report.error.message), report.error));
      case "taken_for_dead":
        return this.#onTakenForDead();
      case "stopped":
        return this.#stopped.resolve();
    }
    report satisfies never;
  }
}
