import { openSync, writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { sharedNow, TOOL_MS } from "./script.ts";

/** The file in which the tool records its calls, independent of the caller. */
export const TOOL_FILE = "BENCH_TOOL_FILE";

let file: number | undefined;
const note = (line: string): void => {
  file ??= openSync(process.env[TOOL_FILE] as string, "a");
  // One write per line, so that a killed process leaves only whole lines.
  writeSync(file, line);
};

/** The tool. Its side effect is the line `made`. */
export async function countCall({ session_id, call }: { session_id: string; call: number }): Promise<string> {
  const begun = sharedNow();
  await wait(TOOL_MS / 2);
  note(`made ${session_id} ${call}\n`);
  await wait(TOOL_MS / 2);
  note(`took ${begun} ${sharedNow()} ${session_id}\n`);
  return `call ${call} is counted`;
}
