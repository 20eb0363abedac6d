import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClientError, EverstepClient } from "../../../src/client/client.ts";
import { startEverstep } from "../../server/everstep-process.ts";
import type { OpenAgentPeer } from "./agent-peer.ts";
import { INSTRUCTIONS, taskOf } from "./script.ts";

const TOOLS = fileURLToPath(new URL("tools", import.meta.url));

/**
 * `everstep serve` with its moniker `agent` and a tool that must not run twice without consent. The variant is `embedded` or
 * `postgres`.
 */
export const open: OpenAgentPeer = async (place, { model_url, tool_file }, variant) => {
  const everstep = await startEverstep(join(place.folder, "store"), {
    ...(variant === "postgres" && { EVERSTEP_STORE: place.database_url }),
    EVERSTEP_TOOLS: TOOLS,
    EVERSTEP_MODEL: "openai/gpt-4.1",
    OPENAI_BASE_URL: model_url,
  });
  const client = new EverstepClient({ url: `http://127.0.0.1:${everstep.port}` });
  let questions = 0;
  /** Answers as a person would who checks whether the call happened. */
  const answerDoubt = async (session_id: string, call: number): Promise<void> => {
    questions += 1;
    const isMade = (await readFile(tool_file, "utf8")).includes(`made ${session_id} ${call}\n`);
    const answer = isMade ? { choice: "result", result: `call ${call} is counted` } : "again";
    await client.answer(session_id, answer);
  };
  return {
    async ask(session_id, onText) {
      const params = { task: taskOf(session_id), instructions: INSTRUCTIONS, tools: ["own/count"] };
      await client.create({ agent_id: "bench", moniker: "agent", session_id, params }).catch((error: unknown) => {
        if (!(error instanceof ClientError && error.status === 409)) throw error;
      });
      let text = "";
      let answered: string | null = null;
      for await (const { type, data } of client.events(session_id, { after: -1, until_ended: true })) {
        if (type === "agent_step_delta") onText?.();
        else if (type === "agent_step") text = data.text ?? "";
        else if (type === "agent_state_update" && data.question && data.question.question_id !== answered) {
          const { question_id, about } = data.question;
          const { kind, args } = about as { kind: string; args: { call: number } };
          if (kind !== "in_doubt") throw new Error(`${session_id} asks about something else`);
          answered = question_id;
          await answerDoubt(session_id, args.call);
        }
      }
      return text;
    },
    get questions() {
      return questions;
    },
    close: async () => everstep[Symbol.asyncDispose](),
  };
};
