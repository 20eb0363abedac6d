import { setTimeout as wait } from "node:timers/promises";
import type { EverstepError } from "../../domain/errors.ts";
import type { MonikerSource, SourceFailure, VersionedMoniker } from "../catalog.ts";
import { StepError } from "../moniker.ts";
import type { Descriptions } from "./description.ts";
import { type Remote, remoteMoniker } from "./remote.ts";
import { describeFailed, remoteGone } from "./remote-errors.ts";

/** How long a worker may take to describe its monikers, in milliseconds. */
const DESCRIBE_MS = 30_000;
/** How long startup waits for workers, in milliseconds; slower ones come later. */
const START_MS = 5000;
/** Delay between two attempts, doubled each time up to the longest, in milliseconds. */
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 15_000;

/** The configured workers, in order. */
export type RemoteFinder = () => Promise<{ name: string; open: () => Remote }[]>;

/**
 * The monikers of workers outside of this process.
 *
 * A worker is asked for its monikers at startup and at every reload. One that does not answer is retried in the background with
 * backoff; so is one that disconnected during a step, since it may come back with another version.
 *
 * REMOTES-1  A worker that does not answer keeps its monikers.
 * REMOTES-2  Only one loop at a time asks a worker.
 */
export class RemoteMonikers implements MonikerSource {
  readonly #find: RemoteFinder;
  readonly #stopping = new AbortController();
  #workers: readonly Worker[] = [];
  #onChange: () => void = () => {};

  constructor(find: RemoteFinder) {
    this.#find = find;
  }

  get monikers(): readonly VersionedMoniker[] {
    return this.#workers.flatMap((worker) => worker.monikers);
  }

  get failures(): readonly SourceFailure[] {
    return this.#workers.flatMap((worker) => worker.failures);
  }

  get awaited(): readonly string[] {
    return this.#workers.filter((worker) => !worker.isDescribed).map(({ name }) => name);
  }

  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Asks every worker; resolves when each has answered or failed once, or after the startup limit. */
  async start(): Promise<void> {
    await this.#findWorkers();
    const limit = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(START_MS)]);
    const answers = Promise.all(this.#workers.map((worker) => worker.ask()));
    await Promise.race([answers, aborted(limit)]);
  }

  async reload(): Promise<void> {
    await this.#findWorkers();
    await Promise.all(this.#workers.map((worker) => worker.ask()));
  }

  /** Known workers stay; removed ones finish their steps. */
  async #findWorkers(): Promise<void> {
    const before = new Map(this.#workers.map((worker) => [worker.name, worker]));
    const configured = await this.#find();
    this.#workers = configured.map(
      ({ name, open }) => before.get(name) ?? new Worker(open(), this.#stopping.signal, () => this.#onChange()),
    );
    for (const worker of before.values()) if (!this.#workers.includes(worker)) void worker.leave();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }
}

/** One worker and its last description. */
class Worker {
  readonly #remote: Remote;
  readonly #leaving = new AbortController();
  readonly #stopping: AbortSignal;
  readonly #onChange: () => void;
  #descriptions: Descriptions | null = null;
  #monikers: readonly VersionedMoniker[] = [];
  #error: EverstepError | null = null;
  #asking: Promise<void> | null = null;
  #retrying: Promise<void> | null = null;

  constructor(remote: Remote, stopping: AbortSignal, onChange: () => void) {
    this.#remote = remote;
    this.#stopping = AbortSignal.any([stopping, this.#leaving.signal]);
    this.#onChange = onChange;
  }

  get name(): string {
    return this.#remote.name;
  }

  get monikers(): readonly VersionedMoniker[] {
    return this.#monikers;
  }

  get isDescribed(): boolean {
    return this.#descriptions !== null;
  }

  get failures(): SourceFailure[] {
    const { name: file } = this;
    const entries = (this.#descriptions?.failures ?? []).map(({ moniker, error }) => ({
      file,
      moniker,
      error: error.message,
    }));
    if (!this.#error) return entries;
    const names = this.#monikers.length === 0 ? [null] : this.#monikers.map(({ name }) => name);
    return [...entries, ...names.map((moniker) => ({ file, moniker, error: this.#error?.message ?? "" }))];
  }

  /** Asks once; after a failure, keeps asking in the background. */
  async ask(): Promise<void> {
    await (this.#asking ??= this.#askOnce().finally(() => (this.#asking = null))); // REMOTES-2
    if (this.#error) this.#retry();
  }

  /** It is no longer configured. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.stop();
  }

  async stop(): Promise<void> {
    await Promise.allSettled([this.#asking, this.#retrying]);
    await this.#remote.stop();
  }

  async #askOnce(): Promise<void> {
    const limit = AbortSignal.timeout(DESCRIBE_MS);
    try {
      this.#descriptions = await this.#remote.describe(AbortSignal.any([limit, this.#stopping]));
      this.#monikers = this.#descriptions.monikers.map((description) =>
        remoteMoniker(this.#remote, description, (error) => this.#stepFailed(error)),
      );
      this.#error = null;
    } catch (error) {
      if (this.#stopping.aborted) return;
      const late =
        limit.aborted && remoteGone(this.name, `did not describe its monikers within ${DESCRIBE_MS / 1000} s`);
      this.#error = describeFailed(late || error); // REMOTES-1
    }
    this.#onChange();
  }

  #retry(): void {
    this.#retrying ??= this.#retryUntilDescribed().finally(() => (this.#retrying = null));
  }

  async #retryUntilDescribed(): Promise<void> {
    for (let ms = FIRST_RETRY_MS; !this.#stopping.aborted; ms = Math.min(ms * 2, LONGEST_RETRY_MS)) {
      await wait(ms * (0.75 + Math.random() / 2), undefined, { signal: this.#stopping, ref: false }).catch(() => {});
      if (this.#stopping.aborted) return;
      await (this.#asking ??= this.#askOnce().finally(() => (this.#asking = null)));
      if (!this.#error) return;
    }
  }

  #stepFailed(error: unknown): void {
    if (error instanceof StepError && error.code === "remote_gone") this.#retry();
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
