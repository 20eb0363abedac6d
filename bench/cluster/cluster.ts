import { join } from "node:path";
import { ActionQueue } from "../../src/actions/action-queue.ts";
import type { SubmitRequest } from "../../src/actions/action-request.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { Child } from "../runtime/child.ts";
import type { WorkerSays } from "./worker-process.ts";

type Worker = { child: Child<WorkerSays>; pid: number };
type Committed = Extract<WorkerSays, { kind: "committed" }>;

/** Workers as real processes, and this process as the server that requests go through. */
export class Cluster implements AsyncDisposable {
  readonly store: Store;
  readonly #queue: ActionQueue;
  readonly #url: string;
  readonly #folder: string;
  readonly #hear: ((pid: number, committed: Committed) => void) | undefined;
  readonly workers: Worker[] = [];

  private constructor(
    store: Store,
    queue: ActionQueue,
    url: string,
    folder: string,
    hear?: (pid: number, committed: Committed) => void,
  ) {
    this.store = store;
    this.#queue = queue;
    this.#url = url;
    this.#folder = folder;
    this.#hear = hear;
  }

  /** `hear` receives the workers' commits; without it they send nothing. */
  static async open(
    url: string,
    folder: string,
    workers: number,
    hear?: (pid: number, committed: Committed) => void,
  ): Promise<Cluster> {
    const store = await openStore(url);
    const cluster = new Cluster(store, new ActionQueue(store, await loadCatalog(undefined)), url, folder, hear);
    for (let index = 0; index < workers; index++) await cluster.join();
    return cluster;
  }

  async join(): Promise<Worker> {
    const child = new Child<WorkerSays>("../cluster/worker-process.ts", [
      this.#url,
      join(this.#folder, "workspace"),
      this.#hear ? "tells" : "silent",
    ]);
    let said = await child.next();
    while (said.kind !== "ready") said = await child.next();
    const worker = { child, pid: said.pid };
    this.workers.push(worker);
    if (this.#hear) void this.#listen(worker);
    return worker;
  }

  async #listen({ child, pid }: Worker): Promise<void> {
    try {
      for (;;) {
        const said = await child.next();
        if (said.kind === "committed") this.#hear?.(pid, said);
      }
    } catch {
      // It has ended, as intended.
    }
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
