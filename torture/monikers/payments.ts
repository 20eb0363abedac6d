import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { defineMoniker, z } from "everstep/moniker";

const NOTES = new URL("../payments.log", import.meta.url);
const YES_OR_NO = [{ value: "yes" }, { value: "no" }];
const AGAIN_OR_SKIP = [{ value: "again" }, { value: "skip" }];

/** The answer to a question, if there is one; other guidance is ignored. */
const answerIn = (guidance: readonly unknown[]): unknown =>
  guidance.map((said) => (said as { answer?: unknown } | null)?.answer).find((answer) => answer !== undefined);

/** Asks before each payment, pays in a step marked `once`, and asks again if that step was cut short. */
export default defineMoniker({
  name: "payments",
  kind: "finite",
  description: "Pays a number of times, each once people said so.",
  params: z.object({ times: z.int().min(1).max(20) }),
  first_step: "propose/0",
  async step({ step, guidance = [] }, { params, attempt, ids, signal }) {
    const [verb, number = "0"] = step.split("/");
    const n = Number(number);
    const key = `${ids.session_id} payment ${n}`;
    const onward = n + 1 < params.times ? { next_step: `propose/${n + 1}` } : { next_step: "end", done: true };
    const proposal = { next_step: `decide/${n}`, ask: { text: `Pay ${n}?`, choices: YES_OR_NO, about: { key } } };
    const doubt = { next_step: `doubt/${n}`, ask: { text: `Paid ${n}?`, choices: AGAIN_OR_SKIP, about: { key } } };
    const payment = { next_step: `pay/${n}`, once: true };
    const answer = answerIn(guidance);
    const of = (frame: object) => ({ step, next_step: "", state: {}, done: false, ...frame });
    switch (verb) {
      case "propose":
        return of(proposal);
      case "decide":
        return of(answer === undefined ? proposal : answer === "yes" ? payment : onward);
      case "doubt":
        return of(answer === undefined ? doubt : answer === "again" ? payment : onward);
      case undefined:
      default:
        if (attempt.after !== null) return of(doubt);
        appendFileSync(NOTES, `${key}\n`);
        await wait(Math.random() * 800, undefined, { signal });
        return of(onward);
    }
  },
});
