import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { isObject } from "../../domain/json.ts";
import type { LoopState } from "../agent/loop-state.ts";
import { roomFor } from "../agent/window.ts";
import { extract, shorten } from "../extract.ts";
import type { Llm } from "../llm/llm.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import { StepError } from "../moniker.ts";

/** Characters of conversation that a chat without a model keeps verbatim. */
const BUDGET = 24_000;
const LARGEST_SUMMARY = 8000;
/** Characters of all loaded contexts. */
const LARGEST_BACKGROUND = 60_000;
/** The largest share of the model's window, so that the conversation has room. */
const FOR_BACKGROUND = 0.4;

export function remember(state: LoopState, ...messages: ModelMessage[]): LoopState {
  const all = [...state.messages, ...messages.filter(({ text }) => text !== "")];
  return { ...state, messages: all, exchange_at: all.length };
}

/**
 * Loads a context beside others or in their place. A context that does not fit is refused: half of one would pass for the
 * whole.
 */
export function withBackground(state: LoopState, loaded: Background, others: Background[], llm: Llm | null): LoopState {
  const background = [...others.filter(({ path }) => path !== loaded.path), loaded];
  const most = llm
    ? Math.min(LARGEST_BACKGROUND, Math.floor(roomFor(llm, state) * FOR_BACKGROUND))
    : LARGEST_BACKGROUND;
  const size = background.reduce((sum, { text }) => sum + text.length, 0);
  if (size <= most) return { ...state, background };
  const beside = background.length > 1 ? `with what is loaded already, ${size}` : String(size);
  throw new StepError(
    "background_too_large",
    `its ${loaded.text.length} characters are too many (${beside} of at most ${most})`,
    {
      retryable: false,
    },
  );
}
type Background = LoopState["background"][number];

/** Without a model: replaces the oldest messages by their most informative sentences if there are too many. */
export function condenseOffline(state: LoopState): LoopState {
  if (sizeOf(state.messages) <= BUDGET) return state;
  const short = state.messages.map((message) => ({ ...message, text: shorten(message.text, BUDGET) }));
  const recent = newest(short, BUDGET / 2);
  const old = short.slice(0, -recent.length);
  const earlier = [state.summary, transcript(old)].filter(Boolean).join("\n\n");
  const summary = old.length === 0 ? state.summary : extract(earlier, LARGEST_SUMMARY);
  return { ...state, messages: recent, summary, exchange_at: recent.length };
}

const sizeOf = (messages: ModelMessage[]): number => messages.reduce((sum, { text }) => sum + text.length, 0);

/** The last message and as many before it as fit. */
function newest(messages: ModelMessage[], most: number): ModelMessage[] {
  let size = 0;
  const before = messages.findLastIndex(({ text }) => {
    size += text.length;
    return size > most;
  });
  return messages.slice(Math.min(before + 1, messages.length - 1));
}

/** For people and files. Continuation lines are indented, so a line that begins with a speaker starts a message. */
export const transcript = (messages: readonly ModelMessage[]): string =>
  messages
    .filter(({ role, text }) => role !== "tool" && text !== "")
    .map((message) => `${speaker(message)}: ${indent(message.text)}`)
    .join("\n");

const speaker = (message: ModelMessage): string =>
  message.role === "user" ? (message.name ?? "User").replaceAll(/[\s:]+/g, " ") : "Agent";

const indent = (text: string): string => text.replaceAll(/(\r\n|[\n\r\v\f\u0085\u2028\u2029])(?=[^\n\r])/g, "$1  ");

export const backgroundText = ({ background }: LoopState): string =>
  background.map(({ path, text }) => `(${path})\n${text}`).join("\n\n");

/** The first release stored a chat as `turns` of a user or the agent. */
export function fromTurns({ turns, ...rest }: JsonObject): JsonObject {
  if (!Array.isArray(turns)) return turns === undefined ? rest : { ...rest, turns };
  const messages = turns.flatMap(toMessage);
  return { ...rest, messages, exchange_at: messages.length };
}

function toMessage(turn: JsonValue): JsonObject[] {
  if (!isObject(turn) || typeof turn["text"] !== "string") return [];
  const { text, user_id } = turn;
  if (turn["role"] === "agent") return [{ role: "assistant", text, tool_calls: [] }];
  return [{ role: "user", text, ...(typeof user_id === "string" ? { name: user_id } : {}) }];
}
