import { isBucket } from "../archive/location.ts";
import { EverstepError } from "../domain/errors.ts";
import type { FolderReport } from "../store/embedded/check-folder.ts";
import { configuredFolder } from "./configured-folder.ts";

/** Checks a data folder and prints the result; the exit code is 1 if it is damaged. */
export async function check(named: string | undefined, { json }: { json?: boolean }): Promise<void> {
  const folder =
    named ??
    configuredFolder(
      "check",
      "pass one: everstep check ./data; for PostgreSQL use its own checks (data checksums, pg_amcheck)",
    );
  // Otherwise LanceDB warns once per query.
  process.env["LANCEDB_LOG"] ??= "error";
  const { checkFolder } = await import("../store/embedded/check-folder.ts");
  const report = await checkFolder(folder);
  report.problems.push(...(await damagedVolumes(report)));
  if (report.problems.length > 0) process.exitCode = 1;
  if (json) return console.log(JSON.stringify(report));
  const { agent_steps, conversation_messages, queue } = report.rows;
  console.log(`${report.folder}: ${agent_steps} steps, ${conversation_messages} messages, ${queue} settled actions`);
  for (const { volume_id, location, steps, messages } of report.volumes)
    console.log(
      `volume ${volume_id}: ${steps} steps, ${messages} messages${isBucket(location) ? ` in ${location}, not checked` : ""}`,
    );
  for (const problem of report.problems) console.log(`damaged: ${problem}`);
  console.log(
    report.problems.length === 0 ? "No damage found." : "Keep a copy of the folder, then restore it from a backup.",
  );
}

/** Every row of volumes in folders; buckets are not fetched. */
async function damagedVolumes({ folder, volumes }: FolderReport): Promise<string[]> {
  const problems: string[] = [];
  const { VolumeFiles } = await import("../archive/volume-files.ts");
  const files = new VolumeFiles(folder);
  for (const volume of volumes.filter(({ location }) => !isBucket(location))) {
    try {
      const kinds = (["steps", "messages"] as const).filter((kind) => volume[kind] > 0);
      const { steps, messages, checksum } = await files.sum(volume, kinds);
      if (steps !== volume.steps || messages !== volume.messages || checksum !== volume.checksum)
        problems.push(`volume ${volume.volume_id} is not what was written`);
    } catch (error) {
      if (!(error instanceof EverstepError)) throw error;
      problems.push(error.message);
    }
  }
  await files.close();
  return problems;
}
