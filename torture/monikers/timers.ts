import { defineMoniker, type FrameOut, z } from "everstep/moniker";

const stateSchema = z.object({ fired: z.int().default(0), until: z.iso.datetime().optional() });

/** Repeatedly waits until a given time. Guidance that wakes it early changes nothing: it waits for the same time. */
export default defineMoniker({
  name: "timers",
  kind: "finite",
  description: "Waits until a time, a number of times.",
  params: z.object({ times: z.int().min(1), wait_ms: z.int().min(0) }),
  step({ step, state }, { params }): FrameOut {
    const { fired, until } = stateSchema.parse(state);
    const now = Date.now();
    if (until !== undefined && Date.parse(until) > now)
      return { step, next_step: step, state, wait: { until }, done: false };
    const count = until === undefined ? fired : fired + 1;
    const data = until === undefined ? null : { fired: count, due: until, at: new Date(now).toISOString() };
    if (count === params.times) return { step, next_step: "end", state: { fired: count }, data, done: true };
    const next = new Date(now + params.wait_ms).toISOString();
    return {
      step,
      next_step: `wait/${count + 1}`,
      state: { fired: count, until: next },
      data,
      wait: { until: next },
      done: false,
    };
  },
});
