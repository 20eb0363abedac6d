import { DBOS } from "@dbos-inc/dbos-sdk";
import type { OpenPeer, Task } from "../peer.ts";

// Sources: docs.dbos.dev/typescript/programming-guide (setConfig, launch; workflows of steps, started with an id),
// docs.dbos.dev/typescript/tutorials/workflow-tutorial (a restarted program recovers its workflows by itself at launch) and
// docs.dbos.dev/typescript/tutorials/workflow-management (cancel stops before the next step, resume continues after the last
// one).
export const open: OpenPeer = async ({ database_url }, step) => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: database_url, logLevel: "error" });
  const session = DBOS.registerWorkflow(
    async (session_id: string, task: Task): Promise<void> => {
      for (let index = 0; index < task.steps; index++)
        await DBOS.runStep(() => step(session_id, index, task), { name: "step" });
    },
    { name: "session" },
  );
  await DBOS.launch();
  return {
    async run(session_ids, task) {
      const handles = await Promise.all(
        session_ids.map((workflowID) => DBOS.startWorkflow(session, { workflowID })(workflowID, task)),
      );
      await Promise.all(handles.map((handle) => handle.getResult()));
    },
    recover: async () => {},
    control: {
      async pause(session_id, accepted) {
        await DBOS.cancelWorkflow(session_id);
        accepted();
      },
      resume: async (session_id) => void (await DBOS.resumeWorkflow(session_id)),
    },
    close: () => DBOS.shutdown(),
  };
};
