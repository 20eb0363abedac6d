import { join } from "node:path";
import { z } from "zod";
import { readConfig } from "../../src/main/config.ts";
import { Models } from "../../src/main/models.ts";
import { Runtime } from "../../src/main/runtime.ts";
import { defineMoniker } from "../../src/monikers/moniker.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";

/** Leaves the whole step to the model. */
const byModel = defineMoniker({
  name: "by-model",
  kind: "continuous",
  description: "A step by the model alone.",
  params: z.object({}),
  step(frame, context) {
    if (!context.llm) throw new Error("the bench has a model");
    return context.llm.runStep(frame, "Count your calls, and keep the notes as they are.", context);
  },
});

export type ModelRuntime = AsyncDisposable & {
  /** Runs this many steps of one session and resolves with the time of each commit. */
  run(steps: number): Promise<number[]>;
};

/** A runtime set up as in `everstep serve`, with the model at that address. */
export async function openModelRuntime(folder: string, url: string): Promise<ModelRuntime> {
  const models = new Models(readConfig({ EVERSTEP_MODEL: "openai/bench", OPENAI_BASE_URL: url }));
  const store = await openEmbeddedStore({ folder });
  const runtime = new Runtime({
    store,
    catalog: new Map([[byModel.name, byModel]]),
    workspace: join(folder, "workspace"),
    llm: (options) => models.for(options),
  });
  await runtime.start();
  return {
    async run(steps) {
      const leaving = new AbortController();
      const session_id = `bench-${steps}`;
      const events = runtime.events.follow({ session_id }, leaving.signal);
      const payload = { moniker: byModel.name, options: { max_steps: steps } };
      await runtime.queue.submit({ action_type: "agent_create", agent_id: "bench", session_id, payload });
      const committed: number[] = [];
      for await (const event of events) {
        if (event.kind !== "step") continue;
        if (event.step.status === "error") throw new Error(`a step of the bench failed: ${event.step.error}`);
        committed.push(performance.now());
        if (committed.length === steps) break;
      }
      return committed;
    },
    async [Symbol.asyncDispose]() {
      await runtime.stop();
      await store.close();
    },
  };
}
