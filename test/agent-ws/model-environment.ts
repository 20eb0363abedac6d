import type { ModelCall } from "../llm/model-call.ts";
import type { ModelServer } from "../llm/model-server.ts";
import type { Environment } from "../server/server-fixture.ts";

/** What makes a server use the test's own provider. */
export const modelEnvironment = (model: ModelServer): Environment => ({
  EVERSTEP_MODEL: "openai/test",
  OPENAI_BASE_URL: model.url,
  OPENAI_API_KEY: "sk-test",
});

/** Answers a chat with the last thing that was said to it. */
export async function echoing(call: ModelCall): Promise<void> {
  const [last = "{}"] = call
    .said("user")
    .split("\n")
    .filter((line) => line.startsWith('{"from":"user"'))
    .slice(-1);
  const { text: said = "" } = JSON.parse(last) as { text?: string };
  await call.reply(JSON.stringify({ tool: "reply", text: `Answer to: ${said}` }), { piece: 16, every_ms: 30 });
}
