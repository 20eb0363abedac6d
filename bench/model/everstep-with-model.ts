import { ModelServer } from "../../test/llm/model-server.ts";
import { type EverstepProcess, startEverstep } from "../server/everstep-process.ts";

export type EverstepWithModel = AsyncDisposable & { everstep: EverstepProcess; model: ModelServer };

/** `everstep serve` in a separate process, its model in this one, so that one clock times both ends. */
export async function startWithModel(folder: string): Promise<EverstepWithModel> {
  const model = await ModelServer.open();
  const everstep = await startEverstep(folder, { EVERSTEP_MODEL: "openai/bench", OPENAI_BASE_URL: model.url });
  return {
    everstep,
    model,
    async [Symbol.asyncDispose]() {
      await everstep[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}
