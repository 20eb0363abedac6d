import { z } from "zod";
import { guidanceText } from "../guidance.ts";
import { defineMoniker } from "../moniker.ts";

export const echo = defineMoniker({
  name: "echo",
  kind: "reactive",
  description: "Answers every message with its own text.",
  params: z.object({}),
  step({ step, guidance = [], state }, { emit }) {
    const text = guidance.map((item) => guidanceText(item) ?? JSON.stringify(item)).join("\n");
    emit({ kind: "delta", text });
    return { step, next_step: String(Number(step) + 1), state, text, done: false };
  },
});
