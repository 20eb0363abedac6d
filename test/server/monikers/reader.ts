import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

/** Pulls new messages of its conversation. Each step's data names the messages it read. */
export default defineMoniker({
  name: "reader",
  kind: "continuous",
  description: "Reads its conversation, a few messages a step.",
  params: z.object({ at_once: z.int().min(1).default(100), says: z.string().optional() }),
  options: { step_interval_ms: 5 },
  async step({ step, state }, { params, unread }) {
    const messages = await unread(params.at_once);
    const data = messages.map(({ message_id }) => message_id);
    const isFirst = state["spoke"] !== true;
    return {
      step,
      next_step: step,
      state: { spoke: true },
      data,
      done: false,
      ...(params.says !== undefined && isFirst ? { text: params.says } : {}),
    };
  },
});
