import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type ArchiveJob, archiveJobSchema, type Volume, volumeSchema } from "../../../domain/volume.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { table } from "../output.ts";

export type ArchiveOptions = {
  olderThan?: string;
  restore?: string[];
  dropOlderThan?: string;
  dryRun?: boolean;
  json?: boolean;
};

const ASK_AGAIN_MS = 300;
const stateSchema = z.object({ job: archiveJobSchema.nullable(), volumes: z.array(volumeSchema) });

/** Starts a job on the server and shows how it goes; without one it lists the volumes. */
export async function archive(client: ApiClient, options: ArchiveOptions): Promise<void> {
  const request = requestOf(options);
  if (!request) return list(client, options);
  await client.post(archiveJobSchema, "/api/archives", request);
  const { job, volumes } = await followed(client, options.json !== true);
  if (options.json) console.log(JSON.stringify({ job, volumes }));
  else if (job?.state === "done") console.log(summary(job));
  if (job?.state === "failed") throw new CommandError(job.error ?? "it failed");
}

async function list(client: ApiClient, { json }: ArchiveOptions): Promise<void> {
  const { job, volumes } = await client.get(stateSchema, "/api/archives");
  if (json) return console.log(JSON.stringify({ job, volumes }));
  if (job?.state === "running") console.log(`${counts(job)} ${WORDS[job.operation]} so far`);
  console.log(listed(volumes));
}

function requestOf({ olderThan, restore, dropOlderThan, dryRun = false }: ArchiveOptions): object | null {
  const operations = [olderThan, restore, dropOlderThan].filter((option) => option !== undefined);
  if (operations.length > 1) throw new CommandError("give one of --older-than, --restore and --drop-older-than", 2);
  if (olderThan !== undefined) return { operation: "archive", older_than: olderThan, dry_run: dryRun };
  if (dropOlderThan !== undefined) return { operation: "drop", older_than: dropOlderThan, dry_run: dryRun };
  return restore === undefined ? null : { operation: "restore", session_ids: restore };
}

/** Until no job runs, with a line that changes where a person looks. */
async function followed(client: ApiClient, isShown: boolean): Promise<z.infer<typeof stateSchema>> {
  const show = (text: string): boolean => isShown && process.stderr.isTTY && process.stderr.write(`\r${text}\u001b[K`);
  for (;;) {
    const state = await client.get(stateSchema, "/api/archives");
    if (state.job?.state !== "running") {
      show("");
      return state;
    }
    show(`${counts(state.job)} so far`);
    await wait(ASK_AGAIN_MS);
  }
}

const WORDS = { archive: "archived", restore: "restored", drop: "dropped" } as const;

const counts = ({ sessions, steps, messages }: ArchiveJob): string =>
  [counted(sessions, "session"), counted(steps, "step"), counted(messages, "message")].join(", ");

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

function summary(job: ArchiveJob): string {
  const word = job.dry_run ? `would be ${WORDS[job.operation]}` : WORDS[job.operation];
  const files = job.volumes > 0 ? ` (${counted(job.volumes, "volume")}, ${inMegabytes(job.bytes)})` : "";
  return `${counts(job)} ${word}${files}`;
}

function listed(volumes: readonly Volume[]): string {
  if (volumes.length === 0) return "nothing is archived";
  const rows = volumes.map(({ volume_id, state, sessions, steps, messages, bytes, newest_ended_at, location }) => [
    volume_id,
    state,
    ...[sessions, steps, messages].map(String),
    inMegabytes(bytes),
    newest_ended_at?.slice(0, 10) ?? "",
    location,
  ]);
  return table(["VOLUME", "STATE", "SESSIONS", "STEPS", "MESSAGES", "SIZE", "ENDED UP TO", "WHERE"], rows);
}

const inMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
