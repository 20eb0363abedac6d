import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Annotation, END, GraphDrained, RunControl, START, StateGraph } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { OpenPeer, Task } from "../peer.ts";

// Sources: docs.langchain.com/oss/javascript/langgraph/persistence (a checkpointer and a thread_id; PostgresSaver.setup()
// first), docs.langchain.com/oss/javascript/langgraph/durable-execution (durability "sync": written before the next step
// starts; null as the input continues), and RunControl in the package's own reference (stops at the next step, the checkpoint
// is saved).

const State = Annotation.Root({
  n: Annotation<number>,
  task: Annotation<Task>,
  pieces: Annotation<string[], string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
});

/** The variant is `sqlite` or `postgres`. */
export const open: OpenPeer = async (place, step, variant) => {
  mkdirSync(place.folder, { recursive: true });
  const sqlite = variant === "sqlite" ? SqliteSaver.fromConnString(join(place.folder, "checkpoints.sqlite")) : null;
  const postgres = sqlite ? null : PostgresSaver.fromConnString(place.database_url);
  await postgres?.setup();
  const graph = new StateGraph(State)
    .addNode("work", async ({ n, task }, { configurable }) => {
      const piece = await step(String(configurable?.["thread_id"]), n, task);
      return { n: n + 1, pieces: task.piece_bytes > 0 ? [piece] : [] };
    })
    .addEdge(START, "work")
    .addConditionalEdges("work", ({ n, task }) => (n >= task.steps ? END : "work"))
    .compile({ checkpointer: (sqlite ?? postgres)! });

  const runs = new Map<string, { control: RunControl; ended: Promise<void> }>();
  /** Without a task it continues from the last checkpoint. */
  const invoke = (thread_id: string, task: Task | null): Promise<void> => {
    const control = new RunControl();
    const input = task && { n: 0, task, pieces: [] };
    const options = { configurable: { thread_id }, durability: "sync", recursionLimit: 1_000_000, control } as const;
    const ended = graph.invoke(input, options).then(
      () => {},
      (error: unknown) => {
        if (!(error instanceof GraphDrained)) throw error;
      },
    );
    runs.set(thread_id, { control, ended });
    return ended;
  };
  const report = (error: unknown): void => console.error(error);
  return {
    run: async (session_ids, task) => void (await Promise.all(session_ids.map((id) => invoke(id, task)))),
    // LangGraph does not list what was running; an application keeps its own list, as the bench does here.
    recover: async (session_ids) => {
      for (const id of session_ids) invoke(id, null).catch(report);
    },
    control: {
      async pause(session_id, accepted) {
        const { control, ended } = runs.get(session_id)!;
        control.requestDrain("pause");
        accepted();
        await ended;
      },
      resume: async (session_id) => void invoke(session_id, null).catch(report),
    },
    async close() {
      sqlite?.db.close();
      await postgres?.end();
    },
  };
};
