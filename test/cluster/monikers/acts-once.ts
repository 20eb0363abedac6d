import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

/** Starts a step marked `once` that never ends. If it was started before, reports what is known about that. */
export default defineMoniker({
  name: "acts-once",
  kind: "finite",
  description: "Acts in a step that must not run twice.",
  params: z.object({}),
  step({ step, state }, { attempt }) {
    if (step === "0") return { step, next_step: "act", state, done: false, once: true };
    if (attempt.number === 1) return new Promise(() => {});
    return { step, next_step: "end", state, data: { ...attempt }, done: true };
  },
});
