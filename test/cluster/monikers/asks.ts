import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

/** Checks a server's health and reports the result. */
export default defineMoniker({
  name: "asks",
  kind: "continuous",
  description: "Asks for an address, over and over.",
  params: z.object({ url: z.string() }),
  options: { step_interval_ms: 50 },
  async step({ step }, { params }) {
    const text = await fetch(params.url).then(
      ({ status }) => String(status),
      (error: Error) => String(error.cause),
    );
    return { step, next_step: step, state: {}, text, done: false };
  },
});
