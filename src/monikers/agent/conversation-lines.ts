import { shorten } from "../extract.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import { jsonLine } from "./json-line.ts";

const LONGEST_LINE = 4000;
const LONGEST_ARGS = 500;

/** For the model: one JSON object per line, so that no text can pose as another message. */
export const conversationLines = (summary: string, messages: readonly ModelMessage[]): string =>
  [
    ...(summary === "" ? [] : [{ from: "summary", text: summary }]),
    ...messages.map((message) => ({
      from: message.role === "user" ? (message.name ?? "user") : message.role,
      text: shorten(message.text, LONGEST_LINE),
      ...(message.role === "assistant" && message.tool_calls.length > 0
        ? {
            calls: message.tool_calls.map(({ name, args }) => `${name} ${shorten(JSON.stringify(args), LONGEST_ARGS)}`),
          }
        : {}),
    })),
  ]
    .map(jsonLine)
    .join("\n");
