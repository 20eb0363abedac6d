import type { OpenAgentPeer } from "../../agent/agent-peer.ts";
import { taskOf } from "../../agent/script.ts";
import { linesOf, RunIds, startBuilt } from "./built-server.ts";

// The WorkflowAgent of ../apps/workflow in the Workflow SDK's local world, over HTTP.

type Part = { type: string; text?: string };

export const open: OpenAgentPeer = async (place, work) => {
  const url = await startBuilt("workflow", place, work);
  const ids = new RunIds(place.folder);
  return {
    async ask(session_id, onText) {
      const run_id = ids.find(session_id);
      const answer = await fetch(`${url}/api/ask`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(run_id ? { run_id } : { task: taskOf(session_id) }),
      });
      if (!answer.ok) throw new Error(`a run was answered ${answer.status}: ${await answer.text()}`);
      if (!run_id) ids.keep(session_id, answer.headers.get("x-workflow-run-id")!);
      let text = "";
      for await (const part of linesOf<Part>(answer)) {
        if (part.type === "text-start") text = "";
        if (part.type === "text-delta") text += part.text ?? "";
        if (part.type === "text-delta") onText?.();
        if (part.type === "finish") return text;
      }
      throw new Error("the stream ended before the run");
    },
    close: async () => {},
  };
};
