import { EverstepError } from "../domain/errors.ts";
import { readConfig } from "./config.ts";

/** Checks a data folder and prints what it found; a damaged one makes the exit code 1. */
export async function check(named: string | undefined, { json }: { json?: boolean }): Promise<void> {
  const folder = named ?? configuredFolder();
  // LanceDB warns once per query otherwise.
  process.env["LANCEDB_LOG"] ??= "error";
  const { checkFolder } = await import("../store/embedded/check-folder.ts");
  const report = await checkFolder(folder);
  if (report.problems.length > 0) process.exitCode = 1;
  if (json) return console.log(JSON.stringify(report));
  const { agent_steps, conversation_messages, queue } = report.rows;
  console.log(`${report.folder}: ${agent_steps} steps, ${conversation_messages} messages, ${queue} settled actions`);
  for (const problem of report.problems) console.log(`damaged: ${problem}`);
  console.log(
    report.problems.length === 0
      ? "Everything is as it was written."
      : "Keep a copy of the folder, then restore it from a backup.",
  );
}

function configuredFolder(): string {
  const { EVERSTEP_STORE } = readConfig(process.env);
  const folder = /^lancedb:(.+)$/.exec(EVERSTEP_STORE)?.[1];
  if (folder !== undefined) return folder;
  throw new EverstepError(
    "config_invalid",
    "EVERSTEP_STORE names no folder to check",
    "name one: everstep check ./data; PostgreSQL has checks of its own (data checksums, pg_amcheck)",
  );
}
