import { z } from "zod";
import { words } from "../../domain/words.ts";
import { defineMoniker, StepError } from "../moniker.ts";

const CHUNK = 4000;
const SENTENCES_PER_CHUNK = 2;

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
  async step({ step, state }, { params, tools }) {
    const text = params.text ?? (await tools.workspace.read(params.path ?? ""));
    const chunks = splitIntoChunks(text);
    if (chunks.length === 0) throw new StepError("nothing_to_do", "the text is empty", { retryable: false });
    const picked = Array.isArray(state["picked"]) ? (state["picked"] as string[]) : [];
    const next = [...picked, tellingSentences(chunks[picked.length] as string)];
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
    const summary = next.join("\n");
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

/** Pieces of about the same size that end where a sentence ends. */
function splitIntoChunks(text: string): string[] {
  const chunks: string[] = [];
  let chunk = "";
  for (const sentence of sentencesOf(text)) {
    if (chunk && chunk.length + sentence.length > CHUNK) {
      chunks.push(chunk);
      chunk = "";
    }
    chunk += `${chunk ? " " : ""}${sentence}`;
  }
  return chunk ? [...chunks, chunk] : chunks;
}

const sentencesOf = (text: string): string[] =>
  text
    .split(/(?<=[.!?…])\s+|\n{2,}/u)
    .map((sentence) => sentence.trim().slice(0, CHUNK))
    .filter(Boolean);

/** The sentences whose words occur most often in the chunk, in their own order. */
function tellingSentences(chunk: string): string {
  const counts = new Map<string, number>();
  for (const word of words(chunk)) if (word.length > 3) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weigh = (sentence: string) => {
    const own = words(sentence);
    return own.reduce((sum, word) => sum + (counts.get(word) ?? 0), 0) / Math.max(8, own.length);
  };
  const ranked = sentencesOf(chunk).map((sentence, index) => ({ sentence, index, weight: weigh(sentence) }));
  const best = ranked.sort((a, b) => b.weight - a.weight || a.index - b.index).slice(0, SENTENCES_PER_CHUNK);
  return best
    .sort((a, b) => a.index - b.index)
    .map(({ sentence }) => sentence)
    .join(" ");
}
