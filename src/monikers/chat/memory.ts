import { z } from "zod";
import { type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { extract, shorten } from "../extract.ts";
import { type StepContext, StepError } from "../moniker.ts";

/** `user_id`: who of several people said it, where that is known. */
const turnSchema = z.object({ role: z.enum(["user", "agent"]), user_id: z.string().optional(), text: z.string() });
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
  const summary = await summaryOf({ ...memory, turns: old }, context);
  // The answer was given already: where no summary can be had, a later step makes it.
  if (summary === null) return memory;
  return { ...memory, turns: kept, summary: summary.slice(0, LARGEST_SUMMARY) };
}

async function summaryOf(memory: Memory, { llm, signal, emit }: StepContext): Promise<string | null> {
  if (!llm) return extract([memory.summary, transcript(memory.turns)].filter(Boolean).join("\n\n"), LARGEST_SUMMARY);
  const quiet = { signal, emit: (news: Parameters<typeof emit>[0]) => news.kind === "usage" && emit(news) };
  try {
    return await llm.summarize(conversationLines(memory), "so that the conversation can go on without it", quiet);
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

/** For people and files. A line that begins with a speaker is a turn's first: further lines of a text are set in. */
export const transcript = (turns: Turn[]): string =>
  turns.map(({ role, text }) => `${role === "user" ? "User" : "Agent"}: ${setIn(text)}`).join("\n");

const setIn = (text: string): string => text.replaceAll(/(\r\n|[\n\r\v\f\u0085\u2028\u2029])(?=[^\n\r])/g, "$1  ");

/** For the model: one JSON object on each line, so that no text can be taken for a turn of its own. */
export const conversationLines = ({ summary, turns }: Pick<Memory, "summary" | "turns">): string =>
  [
    ...(summary ? [{ from: "summary", text: summary }] : []),
    ...turns.map(({ role, ...said }) => ({ from: role, ...said })),
  ]
    .map(jsonLine)
    .join("\n");

/** As above, for what was loaded. */
export const backgroundLines = ({ background }: Memory): string => background.map(jsonLine).join("\n");

/** JSON leaves two separators of lines as they are. */
export const jsonLine = (value: object): string =>
  JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

export const backgroundText = ({ background }: Memory): string =>
  background.map(({ path, text }) => `(${path})\n${text}`).join("\n\n");
