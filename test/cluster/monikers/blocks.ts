import { appendFileSync } from "node:fs";
import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

/** Blocks its thread. Appends a line to a file each time it starts. */
export default defineMoniker({
  name: "blocks",
  kind: "finite",
  description: "Keeps its thread for a while.",
  params: z.object({ ms: z.int(), file: z.string() }),
  step({ step }, { params }) {
    appendFileSync(params.file, "begun\n");
    // Blocks the thread as a computation would, but leaves the CPU to the other tests.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, params.ms);
    return { step, next_step: step, state: {}, text: "through", done: true };
  },
});
