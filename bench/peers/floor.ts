import type { StepFunction, Task } from "./peer.ts";

export type StepRow = { session_id: string; index: number; piece: string };
export type WriteStep = (row: StepRow) => Promise<void>;

/** Every session is a plain loop: run a step, write it. */
export async function runLoops(
  session_ids: readonly string[],
  task: Task,
  step: StepFunction,
  write: WriteStep,
): Promise<void> {
  const loop = async (session_id: string): Promise<void> => {
    for (let index = 0; index < task.steps; index++)
      await write({ session_id, index, piece: await step(session_id, index, task) });
  };
  await Promise.all(session_ids.map(loop));
}

/** Rows that arrive during a write, or in the same turn of the event loop, are written together. */
export function groupWrites(writeAll: (rows: readonly StepRow[]) => Promise<void>): WriteStep {
  let waiting: { row: StepRow; written: () => void; failed: (error: unknown) => void }[] = [];
  let busy = false;
  const writeWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        await writeAll(group.map(({ row }) => row));
        for (const { written } of group) written();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
      // Sessions whose write is done add their next step before the next write begins.
      await new Promise(setImmediate);
    }
    busy = false;
  };
  return (row) =>
    new Promise((written, failed) => {
      waiting.push({ row, written, failed });
      if (busy) return;
      busy = true;
      setImmediate(() => void writeWaiting());
    });
}
