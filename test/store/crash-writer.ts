import { writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { writeHistory } from "./lane-writer.ts";
import { REPORTS, type WriterOrder, type WriterReport } from "./writer-process.ts";

// A program that continues the history in a folder until SIGTERM, unless its parent kills it first.
const order = JSON.parse(process.argv[2] ?? "{}") as WriterOrder;

// Written synchronously and in order: what the parent reads was acknowledged before the process ended, and nothing is buffered.
const report = (line: WriterReport): void => void writeSync(REPORTS, `${JSON.stringify(line)}\n`);

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const store = await openEmbeddedStore({ folder: order.folder, tuning: order.tuning });
report({ kind: "opened" });

const upkeep = order.constantly.map(async (work) => {
  while (!stop.signal.aborted) {
    report({ kind: "started", work });
    await store[work]();
    report({ kind: "finished", work });
    await pause(1);
  }
});
const writing = writeHistory(store, {
  lanes: order.lanes,
  pace_ms: order.pace_ms,
  signal: stop.signal,
  acknowledge: ({ session_id, key, name }) => report({ kind: "acknowledged", session_id, key, name }),
});
await Promise.all([writing, ...upkeep]);
await store.close();
