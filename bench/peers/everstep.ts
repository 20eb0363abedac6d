import { join } from "node:path";
import { z } from "zod";
import { Runtime } from "../../src/main/runtime.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { defineMoniker } from "../../src/monikers/moniker.ts";
import { openStore } from "../../src/store/open-store.ts";
import { News } from "../runtime/news.ts";
import { hear } from "../runtime/open-runtime.ts";
import type { OpenPeer, StepFunction, Task } from "./peer.ts";

/** Set up as `everstep serve` does it, without the surfaces. The variant is `embedded` or `postgres`. */
export const open: OpenPeer = async (place, step, variant) => {
  const url = variant === "postgres" ? place.database_url : `lancedb:${join(place.folder, "store")}`;
  const news = new News();
  const settled = new Set<string>();
  const done = new Set<string>();
  const store = await openStore(url);
  const heard = hear(store, ({ actions, sessions }) => {
    for (const { action_id, processed } of actions ?? []) if (processed) settled.add(action_id);
    for (const { session } of sessions ?? []) if (session.status === "done") done.add(session.session_id);
    news.tell();
  });
  const moniker = benchMoniker(step);
  const catalog = new Map(await loadCatalog(undefined)).set(moniker.name, moniker);
  const runtime = new Runtime({ store: heard, catalog, workspace: join(place.folder, "workspace") });
  await runtime.start();

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
    // Nothing is to be said: a runtime takes up the sessions that it finds.
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

const benchMoniker = (step: StepFunction) =>
  defineMoniker({
    name: "bench",
    kind: "finite",
    description: "Does the bench's steps.",
    params: z.object({ steps: z.int(), step_ms: z.number(), piece_bytes: z.int() }),
    async step({ step: token, state }, { params, ids: { session_id, iteration } }) {
      const piece = await step(session_id, iteration, params);
      const before = Array.isArray(state["pieces"]) ? state["pieces"] : [];
      const pieces = params.piece_bytes > 0 ? [...before, piece] : before;
      const done = iteration + 1 >= params.steps;
      return { step: token, next_step: String(iteration + 1), state: { n: iteration, pieces }, done };
    },
  });
