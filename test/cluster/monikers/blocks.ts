import { appendFileSync } from "node:fs";
import { z } from "zod";
import { defineMoniker } from "../../../src/monikers/moniker.ts";

/** Computes without a pause. Each time that it begins it adds a line to a file. */
export default defineMoniker({
  name: "blocks",
  kind: "finite",
  description: "Keeps its thread for a while.",
  params: z.object({ ms: z.int(), file: z.string() }),
  step({ step }, { params }) {
    appendFileSync(params.file, "begun\n");
    const until = performance.now() + params.ms;
    while (performance.now() < until);
    return { step, next_step: step, state: {}, text: "through", done: true };
  },
});
