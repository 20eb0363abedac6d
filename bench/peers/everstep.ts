import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { limitHeapGrowth } from "../../src/main/heap-growth.ts";
import { openStore } from "../../src/store/open-store.ts";
import { hear } from "../runtime/hear.ts";
import { News } from "../runtime/news.ts";
import type { OpenPeer, Task } from "./peer.ts";

// As in bin/everstep.js.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/everstep", import.meta.url)));

/** Set up as in `everstep serve`, without the surfaces. The variant is `embedded` or `postgres`. */
export const open: OpenPeer = async (place, step, variant) => {
  limitHeapGrowth();
  const url = variant === "postgres" ? place.database_url : `lancedb:${join(place.folder, "store")}`;
  const news = new News();
  const settled = new Set<string>();
  const done = new Set<string>();
  // The store opens while the rest is loaded, as in `everstep serve`.
  const opening = openStore(url);
  const [{ Runtime }, { loadCatalog }, { benchMoniker }] = await Promise.all([
    import("../../src/main/runtime.ts"),
    import("../../src/monikers/catalog.ts"),
    import("./bench-moniker.ts"),
  ]);
  const store = await opening;
  const heard = hear(store, ({ actions, sessions }) => {
    for (const { action_id, processed } of actions ?? []) if (processed) settled.add(action_id);
    for (const { session } of sessions ?? []) if (session.status === "done") done.add(session.session_id);
    news.tell();
  });
  const moniker = benchMoniker(step);
  const catalog = new Map(await loadCatalog(undefined)).set(moniker.name, moniker);
  const runtime = new Runtime({ store: heard, catalog, workspace: join(place.folder, "workspace") });
  await runtime.start();
  flushCompileCache();

  const submit = async (request: Parameters<typeof runtime.queue.submit>[0]): Promise<string> => {
    const outcome = await runtime.queue.submit(request);
    if (outcome.kind === "accepted") return outcome.action_id;
    throw new Error(`a request of the bench was answered ${JSON.stringify(outcome)}`);
  };
  const create = (session_id: string, params: Task) =>
    submit({ action_type: "agent_create", agent_id: "bench", session_id, payload: { moniker: moniker.name, params } });
  return {
    async run(session_ids, task) {
      await Promise.all(session_ids.map((id) => create(id, task)));
      await news.until("every session is done", () => session_ids.every((id) => done.has(id)), 600_000);
    },
    // Nothing to do: a runtime continues the sessions it finds.
    recover: async () => {},
    control: {
      async pause(session_id, accepted) {
        const action_id = await submit({ action_type: "agent_pause", session_id });
        accepted();
        await news.until("the pause is effective", () => settled.has(action_id));
      },
      resume: async (session_id) => void (await submit({ action_type: "agent_resume", session_id })),
    },
    async close() {
      await runtime.stop();
      await store.close();
    },
  };
};
