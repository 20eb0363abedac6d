import { z } from "zod";
import type { FrameIn } from "../../domain/step-frame.ts";
import { shorten } from "../extract.ts";
import { guidanceText } from "../guidance.ts";
import type { Llm } from "../llm/llm.ts";
import { defineMoniker, type StepContext } from "../moniker.ts";

const LONGEST_SUBJECT = 500;

/** How many earlier jokes the model is shown, so that it does not repeat them. */
const MOST_EARLIER = 20;
const earlierSchema = z.array(z.string()).catch([]);

const JOKES = [
  (subject: string) => `Why did the agent bring ${subject} to the meeting? It wanted a step in the right direction.`,
  (subject: string) => `I asked ${subject} for a joke. It said the setup is durable and the punchline is retried.`,
  (subject: string) =>
    `How many engineers does it take to explain ${subject}? One to start, and one to resume after the crash.`,
  (subject: string) => `${subject} walks into a bar. The bartender says: "We do not serve your kind exactly once."`,
  (subject: string) =>
    `What do ${subject} and a good queue have in common? Nobody notices them until something is lost.`,
  (subject: string) => `They told me ${subject} scales. They did not say in which direction.`,
];

/** Tells jokes until someone stops it. Guidance (a string, or `{subject}`) changes the subject. */
export const joke = defineMoniker({
  name: "joke",
  kind: "continuous",
  description: "Tells one joke after another about a subject; guidance changes the subject.",
  params: z.object({
    subject: z.string().min(1).max(LONGEST_SUBJECT).default("computers").describe("What the jokes are about."),
  }),
  options: { step_interval_ms: 3000 },
  async step(frame, context) {
    const { params, ids } = context;
    const { step, state, guidance = [] } = frame;
    const requested = guidance.map((item) => guidanceText(item, "subject")).findLast((text) => text?.trim());
    const subject =
      (requested && shorten(requested.trim(), LONGEST_SUBJECT)) ??
      (typeof state["subject"] === "string" ? state["subject"] : params.subject);
    const earlier = earlierSchema.parse(state["earlier"]);
    const text = context.llm
      ? await fromModel(context.llm, subject, earlier, frame, context)
      : fromList(subject, context);
    const count = ids.iteration + 1;
    const remembered = context.llm && { earlier: [...earlier, shorten(text, LONGEST_SUBJECT)].slice(-MOST_EARLIER) };
    return { step, next_step: String(count), state: { subject, told: count, ...remembered }, text, done: false };
  },
});

async function fromModel(
  llm: Llm,
  subject: string,
  earlier: string[],
  { step, guidance }: FrameIn,
  context: StepContext,
): Promise<string> {
  const task = `Tell one short, kind joke about ${JSON.stringify(subject)} that names the subject. The jokes that you told before are in the state as "earlier": tell a different one.`;
  const frame = { step, state: { subject, told: context.ids.iteration, earlier }, ...(guidance ? { guidance } : {}) };
  return (await llm.runStep(frame, task, context)).text ?? "";
}

function fromList(subject: string, { ids, emit }: StepContext): string {
  const text = (JOKES[ids.iteration % JOKES.length] as (subject: string) => string)(subject);
  for (const word of text.split(/(?<= )/)) emit({ kind: "delta", text: word });
  return text;
}
