import { getCompileCacheDir } from "node:module";
import { Worker } from "node:worker_threads";
import { EverstepError } from "../../domain/errors.ts";
import type { Engine } from "./engine.ts";
import type { History } from "./history.ts";
import type { Tuning } from "./mover.ts";
import type { Notice } from "./upgrade-folder.ts";
import { type PackedError, unpackError } from "./wire.ts";

export type Call = { id: number; method: string; args: unknown[] };
export type Answer = { id: number; result: unknown } | { id: number; error: PackedError } | { notice: string };

/** Where this program keeps what it compiled, if it does: the thread does the same. */
export type ThreadData = { compile_cache: string | undefined };

type Methods = {
  [Name in keyof Engine as Engine[Name] extends (...args: never[]) => unknown ? Name : never]: Engine[Name];
} & {
  [Name in keyof History as `history.${Name & string}`]: History[Name];
} & { open(folder: string, tuning: Partial<Tuning>): void };

/** Rows pass through the thread quickly: a small nursery keeps memory down and costs no speed. */
const RESOURCES = { maxYoungGenerationSizeMb: 16 };

/** Calls into the journal's thread. A thread that dies fails every call, under way or later, with a coded error. */
export class ThreadChannel {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>();
  /** Resolves when the engine is open. */
  readonly opened: Promise<void>;
  #nextId = 0;
  #dead: EverstepError | undefined;

  readonly folder: string;

  /** `notice` is told what takes long while the folder is opened. */
  constructor(folder: string, tuning: Partial<Tuning>, notice: Notice = () => {}) {
    this.folder = folder;
    // LanceDB reads the process's own environment, and without this it warns once per query.
    process.env["LANCEDB_LOG"] ??= "error";
    const workerData: ThreadData = { compile_cache: getCompileCacheDir() };
    this.#worker = new Worker(new URL("./thread.ts", import.meta.url), { resourceLimits: RESOURCES, workerData });
    this.#worker.on("message", (answer: Answer) => {
      if ("notice" in answer) notice(answer.notice);
      else this.#settle(answer);
    });
    this.#worker.on("error", (error) => this.#die(error));
    this.#worker.on("exit", () => this.#die(new Error("the thread ended")));
    this.opened = this.call("open", folder, tuning);
    this.opened.catch(() => {}); // Whoever waits for it is told.
  }

  call<Name extends keyof Methods>(
    method: Name,
    ...args: Parameters<Methods[Name]>
  ): Promise<Awaited<ReturnType<Methods[Name]>>> {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args } satisfies Call);
    });
  }

  /** Resolves when the thread is gone; later calls fail with the reason. */
  async end(reason: EverstepError): Promise<void> {
    this.#dead ??= reason;
    await this.#worker.terminate();
  }

  #settle(answer: Exclude<Answer, { notice: string }>): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(unpackError(answer.error));
    else waiting?.resolve(answer.result as never);
  }

  #die(cause: unknown): void {
    this.#dead ??= new EverstepError(
      "store_unavailable",
      "the store's thread died",
      "restart Everstep; what was acknowledged is on disk",
      cause,
    );
    for (const { reject } of this.#waiting.values()) reject(this.#dead);
    this.#waiting.clear();
  }
}
