import { DBOS } from "@dbos-inc/dbos-sdk";
import type { OpenAgentPeer } from "../../agent/agent-peer.ts";
import { countCall } from "../../agent/count-call.ts";
import { taskOf } from "../../agent/script.ts";
import { type Message, openModel } from "./openai-turn.ts";

// Sources: docs.dbos.dev/ai/ai-quickstart (an agent is a workflow, its model and tool calls are steps),
// docs.dbos.dev/ai/streaming (DBOS.writeStream in a step, DBOS.readStream by the caller), and those listed in ../dbos.ts.
export const open: OpenAgentPeer = async ({ database_url }, { model_url }) => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: database_url, logLevel: "error" });
  const think = openModel(model_url);
  const agent = DBOS.registerWorkflow(
    async (session_id: string, streamed: boolean): Promise<string> => {
      const messages: Message[] = [{ role: "user", content: taskOf(session_id) }];
      const onText = streamed ? (text: string) => DBOS.writeStream("text", text) : () => {};
      for (;;) {
        const turn = await DBOS.runStep(() => think(messages, onText), { name: "think" });
        messages.push(turn);
        if (!turn.tool_calls) return String(turn.content);
        // Started together and awaited together, as docs.dbos.dev/typescript/tutorials/workflow-tutorial recommends for
        // parallel steps.
        const results = await Promise.allSettled(
          turn.tool_calls.map(({ function: called }) =>
            DBOS.runStep(() => countCall(JSON.parse(called.arguments)), { name: called.name }),
          ),
        );
        for (const [index, { id }] of turn.tool_calls.entries()) {
          const result = results[index]!;
          if (result.status === "rejected") throw result.reason;
          messages.push({ role: "tool", tool_call_id: id, content: result.value });
        }
      }
    },
    { name: "agent" },
  );
  await DBOS.launch();
  return {
    async ask(workflowID, onText) {
      const status = await DBOS.getWorkflowStatus(workflowID);
      const handle = status
        ? DBOS.retrieveWorkflow<string>(workflowID)
        : await DBOS.startWorkflow(agent, { workflowID })(workflowID, onText !== null);
      if (onText) for await (const _ of DBOS.readStream(workflowID, "text")) onText();
      return handle.getResult();
    },
    close: () => DBOS.shutdown(),
  };
};
