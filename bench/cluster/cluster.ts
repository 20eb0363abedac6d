import { join } from "node:path";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { ActionQueue, type SubmitRequest } from "../../src/queue/submit.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { Child } from "../runtime/child.ts";

export type Worker = { child: Child<{ pid: number }>; pid: number };

/** Workers as real processes, and this process as the server that requests go through. */
export class Cluster implements AsyncDisposable {
  readonly store: Store;
  readonly #queue: ActionQueue;
  readonly #url: string;
  readonly #folder: string;
  readonly workers: Worker[] = [];

  private constructor(store: Store, queue: ActionQueue, url: string, folder: string) {
    this.store = store;
    this.#queue = queue;
    this.#url = url;
    this.#folder = folder;
  }

  static async open(url: string, folder: string, workers: number): Promise<Cluster> {
    const store = await openStore(url);
    const cluster = new Cluster(store, new ActionQueue(store, await loadCatalog(undefined)), url, folder);
    for (let index = 0; index < workers; index++) await cluster.join();
    return cluster;
  }

  async join(): Promise<Worker> {
    const child = new Child<{ pid: number }>("../cluster/worker-process.ts", [
      this.#url,
      join(this.#folder, "workspace"),
    ]);
    const worker = { child, pid: (await child.next()).pid };
    this.workers.push(worker);
    return worker;
  }

  async submit(request: SubmitRequest): Promise<{ action_id: string; session_id: string }> {
    const outcome = await this.#queue.submit(request);
    if (outcome.kind === "accepted") return outcome;
    throw new Error(`a request of the bench was answered ${JSON.stringify(outcome)}`);
  }

  async createMany(count: number, params: { to: number; delay_ms?: number }): Promise<string[]> {
    const request = { action_type: "agent_create", agent_id: "bench", payload: { moniker: "count", params } } as const;
    const created = await Promise.all(Array.from({ length: count }, () => this.submit(request)));
    return created.map(({ session_id }) => session_id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.workers) await child[Symbol.asyncDispose]();
    await this.store.close();
  }
}
