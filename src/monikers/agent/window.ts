import { shorten } from "../extract.ts";
import type { Llm } from "../llm/llm.ts";
import type { ModelMessage, ModelRequest } from "../llm/model-turn.ts";
import type { LoopState } from "./loop-state.ts";

/**
 * Keeps requests within the model's window. Sizes are in characters, since providers count tokens differently; a provider that
 * still finds a request too large lowers `window_share`.
 */

/** A cautious estimate for most languages. */
const CHARACTERS_PER_TOKEN = 3;
/** The rest is for the reply. */
const FOR_REQUEST = 0.75;
/** A request that is too large is reduced to this share, so that the next one fits as well. */
const AFTER_CONDENSING = 0.5;
/** The largest share of the request for a single message. */
const FOR_ONE_MESSAGE = 0.4;
/** Characters kept of a tool output or message that is truncated. */
const LEFT_OF_LONG = 500;
/** The newest messages are kept verbatim as long as anything else can be shortened. */
const NEWEST = 6;

export const roomFor = (llm: Llm, { window_share }: LoopState): number =>
  Math.floor(llm.context_window * window_share * FOR_REQUEST * CHARACTERS_PER_TOKEN);

export function sizeOf({ instructions, messages, tools = [] }: ModelRequest): number {
  const toolSize = tools.reduce((sum, tool) => sum + JSON.stringify(tool).length, 0);
  return instructions.length + toolSize + messages.reduce((sum, message) => sum + messageSize(message), 0);
}

function messageSize(message: ModelMessage): number {
  if (message.role !== "assistant") return message.text.length;
  const parts = message.provider ? JSON.stringify(message.provider.parts).length : 0;
  return Math.max(message.text.length + JSON.stringify(message.tool_calls).length, parts);
}

/** Truncates a message that would fill the window alone, and says so. */
export function withinLimit<Message extends ModelMessage>(message: Message, room: number): Message {
  const most = Math.floor(room * FOR_ONE_MESSAGE);
  if (message.text.length <= most) return message;
  const note = `[The rest is left out: these were ${message.text.length} characters, of which the model takes about ${most}.]`;
  return { ...message, text: `${shorten(message.text, LEFT_OF_LONG)}\n${note}` };
}

export const isTooLong = (message: ModelMessage, room: number): boolean =>
  message.text.length > Math.floor(room * FOR_ONE_MESSAGE);

/** Truncates old tool outputs; their steps keep them in full. */
export function withoutOldOutputs(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.map((message, index) => {
    if (message.role !== "tool" || index >= messages.length - NEWEST || message.text.length <= 2 * LEFT_OF_LONG)
      return message;
    const note = `[Left out to make room: this output had ${message.text.length} characters. Call the tool again if they matter.]`;
    return { ...message, text: `${shorten(message.text, LEFT_OF_LONG)}\n${note}` };
  });
}

export const isRoomy = (size: number, room: number): boolean => size <= room * AFTER_CONDENSING;

/**
 * Where to cut: the messages before become a summary, the rest stays. Null if nothing can be cut. Never between a call and its
 * result (LOOP-1).
 */
export function cutAt(messages: readonly ModelMessage[], room: number): number | null {
  const most = room * AFTER_CONDENSING;
  let size = 0;
  let cut: number | null = null;
  for (let index = messages.length - 1; index > 0; index--) {
    const message = messages[index] as ModelMessage;
    size += messageSize(message);
    if (cut !== null && size > most) break;
    if (message.role !== "tool") cut = index;
  }
  return cut;
}
