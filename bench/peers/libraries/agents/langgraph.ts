import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { type BaseMessage, createAgent, tool } from "langchain";
import { z } from "zod";
import type { OpenAgentPeer } from "../../agent/agent-peer.ts";
import { countCall } from "../../agent/count-call.ts";
import { INSTRUCTIONS, TOOL, taskOf } from "../../agent/script.ts";

// Sources: docs.langchain.com/oss/javascript/langchain/agents (createAgent), …/langchain/streaming (stream mode "messages"),
// docs.langchain.com/oss/javascript/langgraph/persistence and …/durable-execution (durability "sync", null continues from the
// last checkpoint).

/** The variant is `sqlite` or `postgres`. */
export const open: OpenAgentPeer = async (place, { model_url }, variant) => {
  mkdirSync(place.folder, { recursive: true });
  const sqlite = variant === "sqlite" ? SqliteSaver.fromConnString(join(place.folder, "agents.sqlite")) : null;
  const postgres = sqlite ? null : PostgresSaver.fromConnString(place.database_url);
  await postgres?.setup();
  const input = z.object({ session_id: z.string(), call: z.number() });
  const agent = createAgent({
    model: new ChatOpenAI({ model: "bench", apiKey: "none", configuration: { baseURL: model_url } }),
    tools: [tool((call: z.infer<typeof input>) => countCall(call), { ...TOOL, schema: input })],
    systemPrompt: INSTRUCTIONS,
    checkpointer: (sqlite ?? postgres)!,
  });
  return {
    async ask(session_id, onText) {
      const options = { configurable: { thread_id: session_id }, durability: "sync", recursionLimit: 1_000 } as const;
      const { values } = await agent.graph.getState(options);
      const isNew = !("messages" in values);
      const begin = isNew ? { messages: [{ role: "user", content: taskOf(session_id) }] } : null;
      if (!onText) return lastWords(await agent.invoke(begin as never, options));
      for await (const [message] of await agent.stream(begin as never, { ...options, streamMode: "messages" })) {
        if (String((message as BaseMessage).content) !== "") onText();
      }
      return lastWords((await agent.graph.getState(options)).values);
    },
    async close() {
      sqlite?.db.close();
      await postgres?.end();
    },
  };
};

const lastWords = ({ messages }: { messages?: BaseMessage[] }): string => String(messages?.at(-1)?.content);
