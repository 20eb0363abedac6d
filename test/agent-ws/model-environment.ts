import type { ModelCall } from "../llm/model-call.ts";
import type { ModelServer } from "../llm/model-server.ts";
import type { Environment } from "../server/spawn-everstep.ts";

/** The environment that makes a server use the test's own provider. */
export const modelEnvironment = (model: ModelServer): Environment => ({
  EVERSTEP_MODEL: "openai/test",
  OPENAI_BASE_URL: model.url,
  OPENAI_API_KEY: "sk-test",
});

/** The text of a message without the tags that say who wrote it. */
export const wordsOf = (message: string): string => message.replaceAll(/^<message from="[^"]*">\n|\n<\/message>$/g, "");

/** Replies with the last message of the chat. */
export async function echoing(call: ModelCall): Promise<void> {
  const said = wordsOf(call.messages.findLast(({ role }) => role === "user")?.text ?? "");
  await call.reply(`Answer to: ${said}`, { piece: 16, every_ms: 30 });
}
