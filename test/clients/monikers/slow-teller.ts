import { setTimeout as wait } from "node:timers/promises";
import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

const text = (guidance: unknown): string =>
  typeof guidance === "string" ? guidance : ((guidance as { text?: string }).text ?? "");

/** Writes words one after another, in the requested number of steps: "words steps". */
export default defineMoniker({
  name: "slow-teller",
  kind: "reactive",
  description: "Tells words slowly.",
  params: z.object({}),
  async step({ step, guidance = [], state }, { emit, signal }) {
    const asked = guidance.map(text).at(-1);
    const [words = 3, steps = 1] = asked === undefined ? [] : asked.split(" ").map(Number);
    const plan = asked === undefined ? (state as { words: number; left: number }) : { words, left: steps };
    if (plan.left < steps || asked === undefined) emit({ kind: "tool", name: "files/read" });
    let said = "";
    for (let word = 0; word < plan.words && !signal.aborted; word += 1) {
      const piece = `${word === 0 ? "" : " "}word${word}`;
      said += piece;
      emit({ kind: "delta", text: piece });
      await wait(20, undefined, { signal });
    }
    const left = plan.left - 1;
    const next = { words: plan.words, left };
    const number = String(Number(step) + 1);
    return { step, next_step: number, state: next, text: said, done: false, ...(left > 0 ? { go_on: true } : {}) };
  },
});
