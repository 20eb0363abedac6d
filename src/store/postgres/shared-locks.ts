import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { Emitter } from "../../concurrency/emitter.ts";
import { KeyedMutex } from "../../concurrency/mutex.ts";
import { closed } from "../store-errors.ts";
import { toStoreError } from "./connections.ts";
import type { NotifyConnection } from "./notify-connection.ts";

/** The backstop for notifications that were lost, in milliseconds. */
const ASK_AGAIN_MS = 250;

/**
 * Work that no two processes do at once: an advisory lock on the pinned connection, which ends with the process. Within a
 * process the lock would be given twice, so there one waits for the other.
 */
export class SharedLocks {
  readonly #connection: NotifyConnection;
  readonly #lock: number;
  readonly #unlocked = new Emitter<[name: string]>();
  readonly #mutexes = new KeyedMutex();

  constructor(connection: NotifyConnection, lock: number) {
    this.#connection = connection;
    this.#lock = lock;
  }

  /** Another process let go of the name. */
  unlocked(name: string): void {
    this.#unlocked.emit(name);
  }

  withLock<Result>(name: string, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#mutexes.run(name, () => this.#locked(name, work, signal));
  }

  async #locked<Result>(name: string, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    // Shifted, so that no name is taken for a process, whose locks have the same first key.
    const key = createHash("sha256").update(name).digest().readInt32BE(0) | 0x40_00_00_00;
    while (!(await this.#tryLock(key))) {
      if (signal.aborted) throw closed();
      await this.#released(name);
    }
    try {
      return await work();
    } finally {
      // Whoever waits for the work does not wait for this; the connection does both in order.
      void this.#connection
        .query("select pg_advisory_unlock($1, $2)", this.#lock, key)
        .then(() => this.#connection.notify({ kind: "unlocked", name }))
        .catch(() => {});
    }
  }

  async #tryLock(key: number): Promise<boolean> {
    try {
      const [row] = await this.#connection.query("select pg_try_advisory_lock($1, $2) as locked", this.#lock, key);
      return row?.["locked"] === true;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #released(name: string): Promise<void> {
    let stop = (): void => {};
    const released = new Promise<void>((resolve) => {
      stop = this.#unlocked.listen((other) => other === name && resolve());
    });
    await Promise.race([released, wait(ASK_AGAIN_MS)]);
    stop();
  }
}
