import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

// At SIGWINCH the file itself fails, outside any step.
process.on("SIGWINCH", () => {
  throw new Error("left behind by the file");
});

export default defineMoniker({
  name: "fault",
  kind: "reactive",
  description: "Does nothing; its file can be made to fail.",
  params: z.object({}),
  step: async ({ step, state }) => ({ step, next_step: step, state, done: false }),
});
