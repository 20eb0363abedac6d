import { defineEventHandler, readBody } from "nitro/h3";
import { getRun, start } from "workflow/api";
import { agent } from "../../workflows/agent.ts";

/** Starts a run, or follows the given one from its beginning. Each line of the response is a part of its stream. */
export default defineEventHandler(async (event) => {
  const { task, run_id } = (await readBody(event)) as { task: string; run_id?: string };
  const run = run_id ? getRun(run_id) : await start(agent, [task]);
  const lines = new TransformStream({
    transform: (part, controller) => controller.enqueue(new TextEncoder().encode(`${JSON.stringify(part)}\n`)),
  });
  return new Response(run.readable.pipeThrough(lines), { headers: { "x-workflow-run-id": run.runId } });
});
