import { z } from "zod";
import { type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { extract, shorten } from "../extract.ts";
import { type StepContext, StepError } from "../moniker.ts";

const turnSchema = z.object({ role: z.enum(["user", "agent"]), text: z.string() });
const questionSchema = z.object({ text: z.string(), tool: z.string(), args: jsonObjectSchema });

/** All that a chat knows: what was said, what was summarised, what was loaded, and what it waits to be told. */
const memorySchema = z.object({
  turns: z.array(turnSchema).catch([]).default([]),
  summary: z.string().catch("").default(""),
  background: z
    .array(z.object({ path: z.string(), text: z.string() }))
    .catch([])
    .default([]),
  question: questionSchema.nullable().catch(null).default(null),
});
export type Memory = z.infer<typeof memorySchema>;
export type Turn = z.infer<typeof turnSchema>;
export type Question = z.infer<typeof questionSchema>;

/** Characters of conversation that are kept word for word: about six thousand tokens. */
const BUDGET = 24_000;
const LARGEST_SUMMARY = 8000;
const LARGEST_BACKGROUND = 60_000;

export const recall = (state: JsonObject): Memory => memorySchema.parse(state);

export function remember(memory: Memory, ...turns: Turn[]): Memory {
  return { ...memory, turns: [...memory.turns, ...turns.filter(({ text }) => text !== "")] };
}

export function withBackground(memory: Memory, path: string, text: string): Memory {
  const others = memory.background.filter((entry) => entry.path !== path);
  return { ...memory, background: [...others, { path, text: text.slice(0, LARGEST_BACKGROUND) }] };
}

/** Keeps the conversation within its budget: the oldest turns become a summary, one that is too long is cut. */
export async function condense(memory: Memory, context: StepContext): Promise<Memory> {
  if (sizeOf(memory.turns) <= BUDGET) return memory;
  const kept = newest(memory.turns, BUDGET / 2).map((turn) => ({ ...turn, text: shorten(turn.text, BUDGET) }));
  const old = memory.turns.slice(0, -kept.length).map((turn) => ({ ...turn, text: shorten(turn.text, BUDGET) }));
  if (old.length === 0) return { ...memory, turns: kept };
  const summary = await summaryOf([memory.summary, transcript(old)].filter(Boolean).join("\n\n"), context);
  // The answer was given already: where no summary can be had, a later step makes it.
  if (summary === null) return memory;
  return { ...memory, turns: kept, summary: summary.slice(0, LARGEST_SUMMARY) };
}

async function summaryOf(text: string, { llm, signal, emit }: StepContext): Promise<string | null> {
  if (!llm) return extract(text, LARGEST_SUMMARY);
  const quiet = { signal, emit: (news: Parameters<typeof emit>[0]) => news.kind === "usage" && emit(news) };
  try {
    return await llm.summarize(text, "so that the conversation can go on without it", quiet);
  } catch (error) {
    if (error instanceof StepError && error.code !== "cancelled") return null;
    throw error;
  }
}

const sizeOf = (turns: Turn[]): number => turns.reduce((sum, { text }) => sum + text.length, 0);

/** The last turn, and those before it that fit. */
function newest(turns: Turn[], most: number): Turn[] {
  let size = 0;
  const before = turns.findLastIndex(({ text }) => {
    size += text.length;
    return size > most;
  });
  return turns.slice(Math.min(before + 1, turns.length - 1));
}

export const transcript = (turns: Turn[]): string =>
  turns.map(({ role, text }) => `${role === "user" ? "User" : "Agent"}: ${text}`).join("\n");

export const backgroundText = ({ background }: Memory): string =>
  background.map(({ path, text }) => `(${path})\n${text}`).join("\n\n");
