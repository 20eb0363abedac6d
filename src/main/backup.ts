import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { EverstepClient } from "../client/client.ts";
import { EverstepError } from "../domain/errors.ts";
import { now } from "../domain/ids.ts";
import type { Volume } from "../domain/volume.ts";
import { type Copied, copyDurably } from "../files/durable-copy.ts";
import { syncPath } from "../files/sync-path.ts";
import { checkFolder } from "../store/embedded/check-folder.ts";
import { replaceStoreFolder, VOLUMES_FOLDER } from "../store/embedded/data-folder.ts";
import { journalPath } from "../store/embedded/folder-errors.ts";
import { openJournalFile } from "../store/embedded/journal-file.ts";
import { openStore } from "../store/open-store.ts";
import { defaultUrl, withToken } from "../surfaces/cli/program.ts";
import { configuredFolder } from "./configured-folder.ts";

const POSTGRES = "use PostgreSQL's own backups: pg_dump, pg_basebackup";
const PARTIAL = ".partial";
/** A backup's name is its start time, in a form valid on every file system. */
const COMPLETE = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/;
/** LanceDB files with unique names. Others, such as the file list of a version, may be rewritten under the same name. */
const isFinal = (path: string): boolean => /\.lance\/(?:data|_indices)\//.test(path.replaceAll("\\", "/"));

/** A consistent copy of the store's folder, the store's volumes, and how to remove the copy. */
type Staged = { folder: string; volumes: readonly Volume[]; remove: () => Promise<void> };
export type BackupOptions = { url?: string; token?: string; keep: number };

/**
 * Copies everything into a new folder below the given one, while the server keeps running.
 *
 * BACKUP-1  A backup is written under a temporary name and renamed once it is durable. The next backup removes an unfinished
 *           one.
 * BACKUP-2  Backups share the LanceDB files they have in common. Each can be removed or moved on its own.
 */
export async function backUp(into: string, { keep, ...server }: BackupOptions): Promise<void> {
  const began = performance.now();
  await mkdir(into, { recursive: true, mode: 0o700 });
  for (const name of await readdir(into))
    if (name.endsWith(PARTIAL)) await rm(join(into, name), { recursive: true, force: true });
  const earlier = (await completeBackups(into)).at(-1);
  const name = now().replaceAll(":", "-");
  const staged = await stage(server);
  let copied: Copied;
  try {
    copied = await copyDurably(staged.folder, join(into, name + PARTIAL), {
      earlier: earlier === undefined ? undefined : { folder: join(into, earlier), isFinal },
      progress: progressLine(),
    });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ENOENT" && !existsSync(staged.folder) ? replaced(error) : error;
  } finally {
    await staged.remove();
  }
  await rename(join(into, name + PARTIAL), join(into, name)); // BACKUP-1
  await syncPath(into);
  const removed = await removeOld(into, keep);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(
    `${join(into, name)}: ${inMegabytes(copied.bytes + copied.linked_bytes)}, ${inMegabytes(copied.bytes)} of it new, in ${seconds} s`,
  );
  const outside = staged.volumes.filter(({ state, location }) => state !== "dropped" && location !== VOLUMES_FOLDER);
  for (const location of new Set(outside.map((volume) => volume.location)))
    console.log(`archived history in ${location} is not in it: keep a copy of that as well`);
  if (removed > 0) console.log(`removed ${removed} older ${removed === 1 ? "backup" : "backups"} (--keep ${keep})`);
}

/** By the server if one runs; otherwise the folder is free to be opened here. */
async function stage({ url, token }: { url?: string; token?: string }): Promise<Staged> {
  const client = new EverstepClient({ url: url ?? defaultUrl(), ...withToken({ token }), timeout_ms: 0 });
  try {
    const { folder } = await client.request("POST /api/backups");
    if (!existsSync(folder)) throw elsewhere(client.url, folder);
    const { volumes } = await client.request("GET /api/archives");
    return {
      folder,
      volumes,
      remove: () =>
        client
          .request("DELETE /api/backups")
          .catch(() => {})
          .then(() => {}),
    };
  } catch (error) {
    if (url !== undefined || !(error instanceof EverstepError) || error.code !== "server_unreachable") throw error;
  }
  const store = await openStore(`lancedb:${configuredFolder("back up", POSTGRES)}`);
  const folder = (await store.stageBackup?.()) as string;
  return {
    folder,
    volumes: await store.volumes.list(),
    async remove() {
      await store.removeStagedBackup?.();
      await store.close();
    },
  };
}

/** Replaces the data folder by a backup, after checking all of it. */
export async function restore(named: string, { replace = false }: { replace?: boolean }): Promise<void> {
  const folder = resolve(configuredFolder("restore", POSTGRES));
  const backup = existsSync(journalPath(named)) ? named : await newestBackup(named);
  const isThere = existsSync(folder) && (await readdir(folder)).length > 0;
  if (isThere && !replace) throw occupied(folder);
  if (isThere) requireUnused(folder);
  const fresh = `${folder}.restoring`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await copyDurably(backup, fresh, { progress: progressLine() });
  const { problems, rows } = await checkFolder(fresh);
  if (problems.length > 0) throw damagedBackup(backup, problems);
  if (isThere) await replaceStoreFolder(folder, fresh);
  else {
    if (existsSync(folder)) await rmdir(folder);
    await rename(fresh, folder);
    await syncPath(dirname(folder));
  }
  console.log(`${folder}: ${rows.agent_steps} steps and ${rows.conversation_messages} messages as of ${backup}`);
}

/** A damaged folder may be replaced; one in use by a server may not. */
function requireUnused(folder: string): void {
  try {
    openJournalFile(folder).database.close();
  } catch (error) {
    if (error instanceof EverstepError && error.code === "store_locked") throw error;
  }
}

async function completeBackups(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => COMPLETE.test(name)).toSorted();
}

async function newestBackup(folder: string): Promise<string> {
  const newest = existsSync(folder) ? (await completeBackups(folder)).at(-1) : undefined;
  if (newest !== undefined) return join(folder, newest);
  throw new EverstepError(
    "backup_unusable",
    `${folder} contains no backup`,
    "pass a folder that `everstep backup` wrote to",
  );
}

/** Oldest first, under a name that is no longer a backup's, so that a half-removed one is not mistaken for one. */
async function removeOld(into: string, keep: number): Promise<number> {
  const old = (await completeBackups(into)).slice(0, -keep);
  for (const name of old) {
    await rename(join(into, name), join(into, name + PARTIAL));
    await rm(join(into, name + PARTIAL), { recursive: true, force: true });
  }
  return old.length;
}

/** A progress line, on a terminal only. */
function progressLine(): ((copied: Copied) => void) | undefined {
  if (!process.stderr.isTTY) return undefined;
  let shownAt = 0;
  return ({ bytes, files }) => {
    if (performance.now() - shownAt < 200) return;
    shownAt = performance.now();
    process.stderr.write(`\r${inMegabytes(bytes)} in ${files} files copied\u001b[K\r`);
  };
}

const inMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const replaced = (cause: unknown): EverstepError =>
  new EverstepError(
    "backup_unusable",
    "another backup started meanwhile and cancelled this one",
    "run it again",
    cause,
  );

const elsewhere = (url: string, folder: string): EverstepError =>
  new EverstepError(
    "backup_unusable",
    `the data of the server at ${url} is not on this machine (${folder})`,
    "run the command where the server runs, as the same user",
  );

const occupied = (folder: string): EverstepError =>
  new EverstepError(
    "config_invalid",
    `${folder} is not empty`,
    "set EVERSTEP_STORE to an empty folder, or pass --replace, which deletes the current data once the backup is in place",
  );

const damagedBackup = (backup: string, problems: readonly string[]): EverstepError =>
  new EverstepError(
    "backup_unusable",
    `${backup} is damaged: ${problems.slice(0, 3).join("; ")}`,
    "restore an earlier backup; the data folder is unchanged",
  );
