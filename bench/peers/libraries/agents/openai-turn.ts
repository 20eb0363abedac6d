import OpenAI from "openai";
import { INSTRUCTIONS, TOOL } from "../../agent/script.ts";

export type Message = OpenAI.ChatCompletionMessageParam;
export type Turn = OpenAI.ChatCompletionAssistantMessageParam & {
  tool_calls?: OpenAI.ChatCompletionMessageFunctionToolCall[];
};

const PARAMETERS = {
  type: "object",
  properties: { session_id: { type: "string" }, call: { type: "integer" } },
  required: ["session_id", "call"],
};

/** One model call with OpenAI's own client, for libraries that have none. `onText` receives each piece of text. */
export function openModel(baseURL: string) {
  const client = new OpenAI({ baseURL, apiKey: "none" });
  return async (messages: Message[], onText: (text: string) => unknown): Promise<Turn> => {
    const stream = await client.chat.completions.create({
      model: "bench",
      stream: true,
      messages: [{ role: "system", content: INSTRUCTIONS }, ...messages],
      tools: [{ type: "function", function: { ...TOOL, parameters: PARAMETERS } }],
    });
    let content = "";
    const calls: OpenAI.ChatCompletionMessageFunctionToolCall[] = [];
    for await (const { choices } of stream) {
      const delta = choices[0]?.delta;
      if (delta?.content) {
        content += delta.content;
        await onText(delta.content);
      }
      for (const { index, id = "", function: called } of delta?.tool_calls ?? []) {
        const call = (calls[index] ??= { id, type: "function", function: { name: called?.name ?? "", arguments: "" } });
        call.function.arguments += called?.arguments ?? "";
      }
    }
    return { role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) };
  };
}
