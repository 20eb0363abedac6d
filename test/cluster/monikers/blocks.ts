import { appendFileSync } from "node:fs";
import { z } from "zod";
import { defineMoniker } from "../../../src/monikers/moniker.ts";

/** Keeps its thread without a pause. Each time that it begins it adds a line to a file. */
export default defineMoniker({
  name: "blocks",
  kind: "finite",
  description: "Keeps its thread for a while.",
  params: z.object({ ms: z.int(), file: z.string() }),
  step({ step }, { params }) {
    appendFileSync(params.file, "begun\n");
    // Nothing else runs in the thread meanwhile, as if it computed; the other tests keep their processor.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, params.ms);
    return { step, next_step: step, state: {}, text: "through", done: true };
  },
});
