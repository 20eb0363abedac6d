import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

const KINDS: Record<string, () => void> = {
  rejection: () => void Promise.reject(new Error("left behind")),
  exception: () =>
    queueMicrotask(() => {
      throw new Error("left behind");
    }),
  timer: () =>
    void setTimeout(() => {
      throw new Error("left behind");
    }),
};

export default defineMoniker({
  name: "stray",
  kind: "finite",
  description: "Leaves an error behind that nobody catches: at once, or after it returned.",
  params: z.object({ kind: z.enum(["rejection", "exception", "timer"]), waits: z.boolean().default(false) }),
  async step({ step, state }, { params, signal }) {
    KINDS[params.kind]?.();
    if (params.waits) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    return { step, next_step: step, state, done: true };
  },
});
