import { setTimeout as wait } from "node:timers/promises";
import type { EverstepError } from "../../domain/errors.ts";
import type { MonikerSource, SourceFailure, VersionedMoniker } from "../catalog.ts";
import { StepError } from "../moniker.ts";
import type { Descriptions } from "./description.ts";
import { type Remote, remoteMoniker } from "./remote.ts";
import { describeFailed, remoteGone } from "./remote-errors.ts";

/** Milliseconds that a worker may take to say what it has. */
const DESCRIBE_MS = 30_000;
/** Milliseconds that the start waits for workers; those that take longer come later. */
const START_MS = 5000;
/** Milliseconds between two tries, doubled each time up to the longest. */
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 15_000;

/** Workers that there should be, in order. */
export type RemoteFinder = () => Promise<{ name: string; open: () => Remote }[]>;

/**
 * The monikers that workers outside of this process have.
 *
 * A worker is asked what it has at the start and at every reload. One that does not answer is asked again in the background,
 * with growing waits, until it does; so is one that went away during a step, since it may come back as another version.
 *
 * REMOTES-1  A worker that does not answer keeps the monikers that it had.
 * REMOTES-2  A worker is asked by one loop at a time.
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

  /** Asks every worker; resolves when each has answered or failed once, or the start has waited long enough. */
  async start(): Promise<void> {
    await this.#findWorkers();
    const limit = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(START_MS)]);
    const asked = Promise.all(this.#workers.map((worker) => worker.ask()));
    await Promise.race([asked, aborted(limit)]);
  }

  async reload(): Promise<void> {
    await this.#findWorkers();
    await Promise.all(this.#workers.map((worker) => worker.ask()));
  }

  /** Those that are there already go on as they are; those that are gone finish their steps. */
  async #findWorkers(): Promise<void> {
    const before = new Map(this.#workers.map((worker) => [worker.name, worker]));
    const found = await this.#find();
    this.#workers = found.map(
      ({ name, open }) => before.get(name) ?? new Worker(open(), this.#stopping.signal, () => this.#onChange()),
    );
    for (const worker of before.values()) if (!this.#workers.includes(worker)) void worker.leave();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }
}

/** One worker and what it said last. */
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
    const kept = this.#monikers.length === 0 ? [null] : this.#monikers.map(({ name }) => name);
    return [...entries, ...kept.map((moniker) => ({ file, moniker, error: this.#error?.message ?? "" }))];
  }

  /** Asks once; where that fails, goes on asking in the background. */
  async ask(): Promise<void> {
    await (this.#asking ??= this.#askOnce().finally(() => (this.#asking = null))); // REMOTES-2
    if (this.#error) this.#retry();
  }

  /** It is not wanted any more. */
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
      const late = limit.aborted && remoteGone(this.name, `did not say what it has within ${DESCRIBE_MS / 1000} s`);
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
