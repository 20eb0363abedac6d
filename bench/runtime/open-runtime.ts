import { join } from "node:path";
import type { SubmitOutcome } from "../../src/actions/action-queue.ts";
import type { SubmitRequest } from "../../src/actions/action-request.ts";
import { Runtime } from "../../src/main/runtime.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Batch } from "../../src/store/store.ts";
import { hear } from "./hear.ts";

export type OpenRuntime = AsyncDisposable & {
  store: EmbeddedStore;
  /** Milliseconds since the process started. */
  store_open_at: number;
  /** Sessions that were rehydrated. */
  rehydrated: number;
  submit(request: SubmitRequest): Promise<Accepted>;
};
type Accepted = Extract<SubmitOutcome, { kind: "accepted" }>;

export type Watch = {
  /** Added to the built-in monikers; replaces one of the same name. */
  moniker?: Moniker;
  /** Called when a commit has been acknowledged. */
  onCommitted?: (batch: Batch) => void;
};

/** A runtime set up as in `everstep serve`, whose commits can be observed. */
export async function openRuntime(folder: string, watch: Watch = {}): Promise<OpenRuntime> {
  const store = await openEmbeddedStore({ folder });
  const store_open_at = performance.now();
  const catalog = new Map(await loadCatalog(undefined));
  if (watch.moniker) catalog.set(watch.moniker.name, watch.moniker);
  const heard = watch.onCommitted ? hear(store, watch.onCommitted) : store;
  const runtime = new Runtime({ store: heard, catalog, workspace: join(folder, "workspace") });
  const rehydrated = await runtime.start();
  return {
    store,
    store_open_at,
    rehydrated,
    async submit(request) {
      const outcome = await runtime.queue.submit(request);
      if (outcome.kind === "accepted") return outcome;
      throw new Error(`a request of the bench was answered ${JSON.stringify(outcome)}`);
    },
    async [Symbol.asyncDispose]() {
      await runtime.stop();
      await store.close();
    },
  };
}
