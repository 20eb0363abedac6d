import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { eachSentence, sentencesOf, tellingSentences } from "../extract.ts";
import { defineMoniker, type StepContext, StepError } from "../moniker.ts";

const CHUNK = 4000;
const SENTENCES_PER_CHUNK = 2;
const pickedSchema = z.array(z.string()).catch([]);

/** Picks the most telling sentences of a text or a file, a chunk per step, then joins them. */
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
  async step({ step, state }, context) {
    const { params, tools } = context;
    const text = params.text ?? (await tools.workspace.read(params.path ?? ""));
    const chunks = await splitIntoChunks(text);
    if (chunks.length === 0) throw new StepError("nothing_to_do", "the text is empty", { retryable: false });
    const picked = pickedSchema.parse(state["picked"]);
    const next = [...picked, await summaryOf(chunks[picked.length] as string, context)];
    if (next.length < chunks.length) {
      const said = `Read chunk ${next.length} of ${chunks.length}: ${next.at(-1)}`;
      return {
        step,
        next_step: `chunk/${next.length + 1}`,
        state: { picked: next, chunks: chunks.length },
        text: said,
        done: false,
      };
    }
    const summary =
      next.length > 1 && context.llm
        ? await context.llm.summarize(next.join("\n"), "as a whole", context)
        : next.join("\n");
    return {
      step,
      next_step: "done",
      state: { picked: next, chunks: chunks.length },
      text: summary,
      data: { summary, chunks: chunks.length },
      done: true,
    };
  },
});

/** Sentences after which other work gets its turn. */
const SLICE = 10_000;

/** Pieces of about the same size that end where a sentence ends. */
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

async function summaryOf(chunk: string, context: StepContext): Promise<string> {
  if (context.llm) return context.llm.summarize(chunk, "in two or three sentences", context);
  return tellingSentences(sentencesOf(chunk, CHUNK), SENTENCES_PER_CHUNK).join(" ");
}
