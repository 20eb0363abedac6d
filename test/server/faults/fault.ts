import { z } from "zod";
import { defineMoniker } from "../../../src/monikers/moniker.ts";

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
