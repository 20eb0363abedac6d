import { appendFileSync, closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { REPORTS } from "./writer-process.ts";

// A program that appends lines to a file and acknowledges each, with or without syncing it: the power-loss harness must be able
// to distinguish the two.
export type AppendOrder = { file: string; sync: boolean };
export type AppendReport = { line: number };

const order = JSON.parse(process.argv[2] ?? "{}") as AppendOrder;
const file = openSync(order.file, "a");
if (order.sync) {
  const folder = openSync(dirname(order.file), "r");
  fsyncSync(folder);
  closeSync(folder);
}

for (let line = 0; ; line += 1) {
  appendFileSync(file, `${line}\n`);
  if (order.sync) fsyncSync(file);
  const report: AppendReport = { line };
  writeSync(REPORTS, `${JSON.stringify(report)}\n`);
}
