import type { OpenAgentPeer } from "../../agent/agent-peer.ts";
import { taskOf } from "../../agent/script.ts";
import { linesOf, RunIds, startBuilt } from "./built-server.ts";

// Sources: node_modules/eve/docs/guides/deployment/self-hosting.mdx, …/concepts/execution-model-and-durability.mdx (the local
// world) and …/concepts/sessions-runs-and-streaming.md (sessions over HTTP, the stream of their events).

type EveEvent = { type: string; data: { message?: string } };

export const open: OpenAgentPeer = async (place, work) => {
  const url = await startBuilt("eve", place, work);
  const ids = new RunIds(place.folder);
  const begin = async (session_id: string): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ message: taskOf(session_id) });
    const answer = await fetch(`${url}/eve/v1/session`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`a session was answered ${answer.status}: ${await answer.text()}`);
    const { sessionId } = (await answer.json()) as { sessionId: string };
    ids.keep(session_id, sessionId);
    return sessionId;
  };
  return {
    async ask(session_id, onText) {
      const id = ids.find(session_id) ?? (await begin(session_id));
      const answer = await fetch(`${url}/eve/v1/session/${id}/stream?startIndex=0`);
      if (!answer.ok) throw new Error(`a stream was answered ${answer.status}: ${await answer.text()}`);
      let text = "";
      for await (const { type, data } of linesOf<EveEvent>(answer)) {
        if (type === "message.appended") onText?.();
        if (type === "message.completed") text = data.message ?? "";
        if (type === "turn.completed") return text;
        if (type.endsWith(".failed")) throw new Error(`${type}: ${JSON.stringify(data)}`);
      }
      throw new Error("the stream ended before the turn");
    },
    close: async () => {},
  };
};
