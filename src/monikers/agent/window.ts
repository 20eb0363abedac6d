import { shorten } from "../extract.ts";
import type { Llm } from "../llm/llm.ts";
import type { ModelMessage, ModelRequest } from "../llm/model-turn.ts";
import type { LoopState } from "./loop-state.ts";

/**
 * Keeps what the model is told within what it can take. Sizes are in characters: providers count tokens each in their own way,
 * and a provider that finds a request too large all the same lowers `window_share`.
 */

/** On the safe side for text in most languages. */
const CHARACTERS_PER_TOKEN = 3;
/** The rest is for the reply. */
const FOR_REQUEST = 0.75;
/** A request that is too large is brought down to this, so that it does not happen again at once. */
const AFTER_CONDENSING = 0.5;
/** A single message may take so much of the request. */
const FOR_ONE_MESSAGE = 0.4;
/** Of a tool output or a message that has to go. */
const LEFT_OF_LONG = 500;
/** The newest messages stay word for word as long as anything else can go. */
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

/** A message that alone would fill the window is cut, and says so. */
export function withinLimit<Message extends ModelMessage>(message: Message, room: number): Message {
  const most = Math.floor(room * FOR_ONE_MESSAGE);
  if (message.text.length <= most) return message;
  const note = `[The rest is left out: these were ${message.text.length} characters, of which the model takes about ${most}.]`;
  return { ...message, text: `${shorten(message.text, LEFT_OF_LONG)}\n${note}` };
}

export const isTooLong = (message: ModelMessage, room: number): boolean =>
  message.text.length > Math.floor(room * FOR_ONE_MESSAGE);

/** Old outputs of tools shrink to their beginnings; their steps have them whole. */
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
 * Where to cut: what comes before becomes a summary, the rest stays. Null where nothing can go. The cut is never between a call
 * and its result (LOOP-1).
 */
export function cutAt(messages: readonly ModelMessage[], room: number): number | null {
  const most = room * AFTER_CONDENSING;
  let kept = 0;
  let cut: number | null = null;
  for (let index = messages.length - 1; index > 0; index--) {
    const message = messages[index] as ModelMessage;
    kept += messageSize(message);
    if (cut !== null && kept > most) break;
    if (message.role !== "tool") cut = index;
  }
  return cut;
}
