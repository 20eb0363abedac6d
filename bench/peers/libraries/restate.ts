import { createServer } from "node:http2";
import { setTimeout as wait } from "node:timers/promises";
import { createEndpointHandler, type WorkflowContext, workflow } from "@restatedev/restate-sdk";
import { connect } from "@restatedev/restate-sdk-clients";
import type { OpenPeer, Task } from "../peer.ts";

// Sources: docs.restate.dev/tour/workflows (a workflow of durable steps, `ctx.run`, submitted and attached to by its id),
// docs.restate.dev/services/invocation/managing-invocations (pause and resume over the admin API) and
// docs.restate.dev/references/sql-introspection (an invocation's status). The bench starts the server with its defaults.
export const open: OpenPeer = async ({ restate }, step) => {
  const session = workflow({
    name: "session",
    handlers: {
      run: async (context: WorkflowContext, task: Task): Promise<void> => {
        for (let index = 0; index < task.steps; index++)
          await context.run("step", () => step(context.key, index, task));
      },
    },
  });
  const server = createServer(createEndpointHandler({ services: [session], logger: () => {} }));
  await new Promise<void>((listening) => server.listen(restate.service_port, "127.0.0.1", listening));
  const admin = async (method: string, path: string, body?: object): Promise<unknown> => {
    const headers = { "content-type": "application/json", accept: "application/json" };
    const answer = await fetch(`${restate.admin}${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  await admin("POST", "/deployments", { uri: `http://127.0.0.1:${restate.service_port}`, force: true });
  const client = connect({ url: restate.ingress });
  const invocations = new Map<string, string>();
  // One query for all waiting callers, so that polling does not keep the server from pausing.
  const pausing = new Map<string, () => void>();
  const lookForPaused = async (): Promise<void> => {
    while (pausing.size > 0) {
      const query = "select id from sys_invocation where status = 'paused'";
      const { rows } = (await admin("POST", "/query", { query })) as { rows: { id: string }[] };
      for (const { id } of rows) {
        pausing.get(id)?.();
        pausing.delete(id);
      }
      await wait(2);
    }
  };
  const untilPaused = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      pausing.set(id, resolve);
      if (pausing.size === 1) lookForPaused().catch(reject);
    });
  return {
    async run(session_ids, task) {
      const runOne = async (session_id: string): Promise<void> => {
        const handle = client.workflowClient(session, session_id);
        invocations.set(session_id, (await handle.workflowSubmit(task)).invocationId);
        await handle.workflowAttach();
      };
      await Promise.all(session_ids.map(runOne));
    },
    // The server calls again by itself once the service is back.
    recover: async () => {},
    control: {
      async pause(session_id, accepted) {
        const id = invocations.get(session_id)!;
        await admin("PATCH", `/invocations/${id}/pause`);
        accepted();
        await untilPaused(id);
      },
      resume: async (session_id) => void (await admin("PATCH", `/invocations/${invocations.get(session_id)}/resume`)),
    },
    async close() {
      server.close();
    },
  };
};
