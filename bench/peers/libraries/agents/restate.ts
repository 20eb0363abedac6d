import { createServer } from "node:http2";
import { createPubsubObject } from "@restatedev/pubsub";
import { createPubsubClient } from "@restatedev/pubsub-client";
import { createEndpointHandler, RestatePromise, type WorkflowContext, workflow } from "@restatedev/restate-sdk";
import { connect } from "@restatedev/restate-sdk-clients";
import type { OpenAgentPeer } from "../../agent/agent-peer.ts";
import { countCall } from "../../agent/count-call.ts";
import { taskOf } from "../../agent/script.ts";
import { type Message, openModel } from "./openai-turn.ts";

// Sources: docs.restate.dev/tour/vercel-ai-agents and docs.restate.dev/ai/patterns (model and tool calls in ctx.run, parallel
// ones combined with RestatePromise.all), docs.restate.dev/ai/patterns/streaming-responses (the pubsub object), and those
// listed in ../restate.ts.
export const open: OpenAgentPeer = async ({ restate }, { model_url }) => {
  const think = openModel(model_url);
  const pubsub = createPubsubClient({ url: restate.ingress, name: "pubsub", pullInterval: { milliseconds: 1 } });
  const agent = workflow({
    name: "agent",
    handlers: {
      run: async (context: WorkflowContext, streamed: boolean): Promise<string> => {
        const messages: Message[] = [{ role: "user", content: taskOf(context.key) }];
        const onText = streamed ? (text: string) => pubsub.publish(context.key, text) : () => {};
        for (;;) {
          const turn = await context.run("think", () => think(messages, onText));
          messages.push(turn);
          if (!turn.tool_calls) return String(turn.content);
          const calls = turn.tool_calls.map(({ function: called }) =>
            context.run(called.name, () => countCall(JSON.parse(called.arguments))),
          );
          const results = await RestatePromise.all(calls);
          for (const [index, { id }] of turn.tool_calls.entries())
            messages.push({ role: "tool", tool_call_id: id, content: results[index]! });
        }
      },
    },
  });
  const services = [agent, createPubsubObject("pubsub", {})];
  const server = createServer(createEndpointHandler({ services, logger: () => {} }));
  await new Promise<void>((listening) => server.listen(restate.service_port, "127.0.0.1", listening));
  const answer = await fetch(`${restate.admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${restate.service_port}`, force: true }),
  });
  if (!answer.ok) throw new Error(`the deployment was answered ${answer.status}: ${await answer.text()}`);
  const client = connect({ url: restate.ingress });
  return {
    async ask(session_id, onText) {
      const handle = client.workflowClient(agent, session_id);
      // A workflow with a given key runs once, however often it is submitted.
      await handle.workflowSubmit(onText !== null);
      const ended = new AbortController();
      const hear = async (): Promise<void> => {
        for await (const _ of pubsub.pull({ topic: session_id, offset: 0, signal: ended.signal })) onText?.();
      };
      const heard = onText ? hear().catch(() => {}) : null;
      const text = await handle.workflowAttach();
      ended.abort();
      await heard;
      return text;
    },
    async close() {
      server.close();
    },
  };
};
