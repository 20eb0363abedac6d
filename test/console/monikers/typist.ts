import { setTimeout as wait } from "node:timers/promises";
import { defineMoniker, guidanceText } from "everstep/moniker";
import { z } from "zod";
import type { JsonObject } from "../../../src/domain/json.ts";

/** Writes its guidance word by word, so that a reader sees the text grow. A word `uses:NAME` is reported as the use of a tool. */
export default defineMoniker({
  name: "typist",
  kind: "reactive",
  description: "Types what it is told, word by word.",
  params: z.object({
    word_ms: z.int().min(0).max(10_000).default(150).describe("How long each word takes, in milliseconds."),
    tone: z.enum(["plain", "loud"]).default("plain").describe("How it types."),
    signature: z.string().max(100).optional().describe("What it adds at the end."),
  }),
  async step({ step, state, guidance = [] }, { params, signal, ids, emit }) {
    const input = guidance.map((said) => guidanceText(said) ?? "").join(" ");
    const text = [params.tone === "loud" ? input.toUpperCase() : input, params.signature ?? ""].join(" ").trim();
    for (const word of text.split(/(?<= )/)) {
      if (word.startsWith("uses:")) emit({ kind: "tool", name: word.slice("uses:".length).trim() });
      else emit({ kind: "delta", text: word });
      await wait(params.word_ms, undefined, { signal });
    }
    emit({ kind: "usage", tokens: text.split(/\s+/).length });
    const lines = Array.isArray(state["lines"]) ? state["lines"] : [];
    const next: JsonObject = { last: text, count: lines.length + 1, lines: [...lines, text] };
    return {
      step,
      next_step: String(ids.iteration + 1),
      state: next,
      text,
      notes: `typed ${text.length} letters`,
      done: false,
    };
  },
});
