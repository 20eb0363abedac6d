import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

export default defineMoniker({
  name: "deadly",
  kind: "reactive",
  description: "Kills the process that runs its step, unless it is told to be kind.",
  params: z.object({}),
  step({ step, state, guidance }) {
    if (!guidance?.includes("be kind")) process.kill(process.pid, "SIGKILL");
    return { step, next_step: "1", state, text: "still here", done: false };
  },
});
