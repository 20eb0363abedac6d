import { setTimeout as delay } from "node:timers/promises";
import { SHARE_ENV, Worker } from "node:worker_threads";
import { EverstepError } from "../../domain/errors.ts";
import { messageOf, unavailable } from "../store-errors.ts";
import type { Tuning } from "./archiver.ts";
import type { VolumeRows } from "./embedded-volumes.ts";
import type { WebhookRows } from "./embedded-webhooks.ts";
import type { History } from "./history.ts";
import type { Notice, OtherSchema } from "./migrations.ts";
import type { StorageThread } from "./storage-thread.ts";
import { type PackedError, type SentBatch, unpackError } from "./thread-messages.ts";

export type Call = { id: number; method: string; args: unknown[] };
type CallAnswer = { id: number; result: unknown } | { id: number; error: PackedError };
export type Answer = CallAnswer | { notice: string };

/** How the thread is run, besides the storage's own tuning. */
export type ThreadTuning = Partial<Tuning> & {
  /** Heap size in megabytes. Default: V8's. */
  heap_mb?: number;
};

type Methods = {
  [Name in keyof StorageThread as StorageThread[Name] extends (...args: never[]) => unknown
    ? Name
    : never]: StorageThread[Name];
} & {
  [Name in keyof History as `history.${Name & string}`]: History[Name];
} & {
  [Name in keyof WebhookRows as `webhooks.${Name & string}`]: WebhookRows[Name];
} & {
  [Name in keyof VolumeRows as `volumes.${Name & string}`]: VolumeRows[Name];
} & { open(folder: string, tuning: Partial<Tuning>, other: OtherSchema | null): void };

type Pending = {
  method: string;
  args: unknown[];
  /** Threads that died while handling it. */
  deaths: number;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
};

/** Calls wait while a thread opens the folder, go to the open one, and fail once there is none. */
type State = { kind: "opening" } | { kind: "open"; worker: Worker } | { kind: "ended"; reason: EverstepError };

/**
 * Rows pass through the thread quickly: a small young generation saves memory and costs no speed. The heap is several times
 * what commits, reads and checkpoints bring into it at once (docs/decisions/0019-thread-memory.md), because the death of the
 * thread may end the whole process.
 */
const RESOURCES = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 2048 };
/** A thread that dies this often within this many milliseconds is not restarted. */
const DEATHS = { count: 5, within_ms: 60_000 };
/** Attempts to reopen the folder after a death. The dead thread's LanceDB operations may still run for a moment. */
const REOPEN_TRIES = 6;
const REOPEN_WAIT_MS = 200;

/**
 * Calls into the journal's thread.
 *
 * It starts as `opening`. If the first opening fails, `opened` rejects. Once open, a thread that dies (out of heap, say) is
 * replaced by one that reopens the folder:
 *
 * THREAD-1  Acknowledged commits are on disk, so none is lost.
 * THREAD-2  For commits in progress the position shows whether the dead thread wrote them; the others are written by the next
 *           one, once. A caller always gets a definite answer.
 * THREAD-3  Reads in progress fail with an error that says to retry: the result may be what the thread had no room for.
 *
 * It ends by `end`, after repeated deaths, or when the folder can no longer be opened.
 */
export class ThreadChannel {
  /** Resolves when the storage is open. */
  readonly opened: Promise<void>;
  readonly folder: string;
  /** A schema other than this version's. */
  readonly other: OtherSchema | null;
  readonly #tuning: ThreadTuning;
  readonly #notice: Notice;
  #state: State = { kind: "opening" };
  #worker: Worker | undefined;
  /** Calls sent to a thread. */
  readonly #sent = new Map<number, Pending>();
  /** Calls waiting for a thread. */
  #held: Pending[] = [];
  #nextId = 0;
  #deaths: number[] = [];
  /** Set once the thread was told to close: it is not replaced, whether or not its answer arrives. */
  #closing: EverstepError | undefined;

  /** `notice` receives slow steps of opening the folder, and background problems. */
  constructor(folder: string, tuning: ThreadTuning, notice: Notice = () => {}, other: OtherSchema | null = null) {
    this.folder = folder;
    this.other = other;
    this.#tuning = tuning;
    this.#notice = notice;
    // LanceDB reads the process's own environment; without this it warns once per query.
    process.env["LANCEDB_LOG"] ??= "error";
    // Read-ahead of a scan or compaction: 2 GiB and many fragments by default.
    process.env["LANCE_DEFAULT_IO_BUFFER_SIZE"] ??= String(64 << 20);
    process.env["LANCE_DEFAULT_FRAGMENT_READAHEAD"] ??= "1";
    this.opened = this.#start();
    this.opened.catch(() => {}); // Callers that await it get the error.
  }

  call<Name extends keyof Methods>(
    method: Name,
    ...args: Parameters<Methods[Name]>
  ): Promise<Awaited<ReturnType<Methods[Name]>>> {
    return new Promise((resolve, reject) => {
      const pending: Pending = { method, args, deaths: 0, resolve, reject };
      const state = this.#state;
      if (state.kind === "open") this.#send(state.worker, pending);
      else if (state.kind === "opening") this.#held.push(pending);
      else reject(state.reason);
    });
  }

  /** Lets the thread close the folder, and ends. A dead thread has nothing left to close. */
  async close(reason: EverstepError): Promise<void> {
    this.#closing = reason;
    await this.call("close").catch(() => {});
    await this.end(reason);
  }

  /** Resolves when the thread is gone; later calls fail with the reason. */
  async end(reason: EverstepError): Promise<void> {
    this.#end(reason);
    await this.#worker?.terminate();
  }

  #end(reason: EverstepError): void {
    if (this.#state.kind === "ended") return;
    this.#state = { kind: "ended", reason };
    for (const { reject } of [...this.#sent.values(), ...this.#held.splice(0)]) reject(reason);
    this.#sent.clear();
  }

  /** Resolves when the thread has opened the folder. If it dies earlier, this rejects; later, it is replaced. */
  async #start(): Promise<void> {
    const { heap_mb, ...tuning } = this.#tuning;
    const limits = { ...RESOURCES, ...(heap_mb === undefined ? {} : { maxOldGenerationSizeMb: heap_mb }) };
    // Shared, since LanceDB reads the process's own environment (`limitCompaction` in archive.ts).
    const worker = new Worker(new URL("./thread-entry.ts", import.meta.url), {
      resourceLimits: limits,
      env: SHARE_ENV,
    });
    this.#worker = worker;
    let cause: unknown = new Error("the thread ended");
    worker.on("error", (error) => (cause = error));
    // Only now it has released the folder.
    const gone = new Promise<unknown>((resolve) => worker.on("exit", () => resolve(cause)));
    worker.on("message", (answer: Answer) => {
      if ("notice" in answer) this.#notice(answer.notice);
      else this.#settle(answer);
    });
    const opening = new Promise<void>((resolve, reject) => {
      const pending = { method: "open", args: [this.folder, tuning, this.other], deaths: 0, resolve, reject };
      this.#send(worker, pending);
      void gone.then((why) => reject(died(why)));
    });
    await opening;
    if (this.#state.kind === "ended") return;
    this.#state = { kind: "open", worker };
    void gone.then((why) => this.#replace(why));
    for (const pending of this.#held.splice(0)) this.#send(worker, pending);
  }

  async #replace(cause: unknown): Promise<void> {
    if (this.#state.kind === "ended") return;
    if (this.#closing) return this.#end(this.#closing);
    this.#state = { kind: "opening" };
    const now = Date.now();
    this.#deaths = [...this.#deaths.filter((time) => now - time < DEATHS.within_ms), now];
    if (this.#deaths.length >= DEATHS.count) return this.#end(died(cause));
    this.#notice(`the store's thread died (${String(cause)}) and is restarted`);
    this.#holdCommits();
    for (let tries = 1; this.#isOpening(); tries += 1) {
      try {
        return await this.#start();
      } catch (error) {
        if (tries === REOPEN_TRIES) return this.#end(died(error));
        await this.#worker?.terminate();
        await delay(REOPEN_WAIT_MS * 2 ** tries);
      }
    }
  }

  #isOpening(): boolean {
    return this.#state.kind === "opening";
  }

  /** THREAD-2, THREAD-3. Commits are held before all others, in order. */
  #holdCommits(): void {
    const commits: Pending[] = [];
    for (const pending of this.#sent.values()) {
      if (pending.method !== "apply" && pending.method !== "reapply") {
        pending.reject(interrupted());
        continue;
      }
      const deaths = pending.deaths + 1;
      const [batches] = pending.args as [SentBatch[]];
      commits.push({ ...pending, method: "reapply", args: [batches, deaths < 2], deaths });
    }
    this.#sent.clear();
    this.#held.unshift(...commits);
  }

  #send(worker: Worker, pending: Pending): void {
    const id = this.#nextId++;
    this.#sent.set(id, pending);
    worker.postMessage({ id, method: pending.method, args: pending.args } satisfies Call);
  }

  #settle(answer: CallAnswer): void {
    const pending = this.#sent.get(answer.id);
    this.#sent.delete(answer.id);
    // The map's internal tables keep deleted entries for a while: without this its rows would be freed late.
    if (pending) pending.args = [];
    if ("error" in answer) pending?.reject(unpackError(answer.error));
    else pending?.resolve(answer.result as never);
  }
}

const died = (cause: unknown): EverstepError =>
  cause instanceof EverstepError
    ? cause
    : unavailable(
        `the store's thread died (${messageOf(cause)})`,
        "restart Everstep; everything acknowledged is on disk",
        cause,
      );

const interrupted = (): EverstepError =>
  unavailable(
    "the store's thread died during this read and is restarted",
    "retry in a moment; if it happens again, request less at once; nothing was lost",
  );
