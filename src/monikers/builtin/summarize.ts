import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { eachSentence, sentencesOf, topSentences } from "../extract.ts";
import { guidanceText } from "../guidance.ts";
import { defineMoniker, type StepContext, StepError } from "../moniker.ts";

const CHUNK = 4000;
const SENTENCES_PER_CHUNK = 2;
const textsSchema = z.array(z.string()).catch([]);

/** Picks the most informative sentences of a text or file, one chunk per step, then joins them. */
export const summarize = defineMoniker({
  name: "summarize",
  kind: "finite",
  description: "Summarises a text or a workspace file, a chunk per step.",
  params: z
    .object({
      text: z.string().min(1).optional().describe("The text itself."),
      path: z.string().min(1).optional().describe("A file in the workspace."),
    })
    .refine(({ text, path }) => (text === undefined) !== (path === undefined), "give either text or path"),
  first_step: "chunk/1",
  async step({ step, state, guidance = [] }, context) {
    const { params, tools } = context;
    const wishes = [...textsSchema.parse(state["wishes"]), ...guidance.flatMap((item) => guidanceText(item) ?? [])];
    const text = params.text ?? (await tools.workspace.read(params.path ?? ""));
    const chunks = await splitIntoChunks(text);
    if (chunks.length === 0) throw new StepError("nothing_to_do", "the text is empty", { retryable: false });
    const picked = textsSchema.parse(state["picked"]);
    const next = [...picked, await summaryOf(chunks[picked.length] as string, wishes, context)];
    const after = { picked: next, chunks: chunks.length, ...(wishes.length > 0 && { wishes }) };
    if (next.length < chunks.length) {
      const progress = `Read chunk ${next.length} of ${chunks.length}: ${next.at(-1)}`;
      return {
        step,
        next_step: `chunk/${next.length + 1}`,
        state: after,
        text: progress,
        done: false,
      };
    }
    const summary =
      next.length > 1 && context.llm
        ? await context.llm.summarize(next.join("\n"), purpose("as a whole", wishes), context)
        : next.join("\n");
    return {
      step,
      next_step: "done",
      state: after,
      text: summary,
      data: { summary, chunks: chunks.length },
      done: true,
    };
  },
});

/** Yields to other work after this many sentences. */
const SLICE = 10_000;

/** Chunks of similar size that end at sentence boundaries. */
async function splitIntoChunks(text: string): Promise<string[]> {
  const chunks: string[] = [];
  let chunk = "";
  let sentences = 0;
  for (const sentence of eachSentence(text, CHUNK)) {
    sentences += 1;
    if (sentences % SLICE === 0) await turn();
    if (chunk && chunk.length + sentence.length > CHUNK) {
      chunks.push(chunk);
      chunk = "";
    }
    chunk += `${chunk ? " " : ""}${sentence}`;
  }
  return chunk ? [...chunks, chunk] : chunks;
}

/** Guidance received so far applies to every further chunk. */
const purpose = (how: string, wishes: string[]): string =>
  wishes.length === 0 ? how : `${how}; people asked: ${wishes.map((wish) => JSON.stringify(wish)).join(", ")}`;

async function summaryOf(chunk: string, wishes: string[], context: StepContext): Promise<string> {
  if (context.llm) return context.llm.summarize(chunk, purpose("in two or three sentences", wishes), context);
  return topSentences(sentencesOf(chunk, CHUNK), SENTENCES_PER_CHUNK).join(" ");
}
