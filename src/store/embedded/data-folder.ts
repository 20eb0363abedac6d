import { existsSync } from "node:fs";
import { copyFile, link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { newId } from "../../domain/ids.ts";
import { copyOpenFile } from "../../files/durable-copy.ts";
import { syncPath } from "../../files/sync-path.ts";
import { full, unavailable } from "../store-errors.ts";
import { JOURNAL, logPath } from "./folder-errors.ts";

/** Rewritten in place by LanceDB and only a hint: it need not be durable. */
const HINT = "latest_version_hint.json";

/** LanceDB never syncs. Its files are written once and then only removed, so each is synced once, its folders every time. */
export class DurableFiles {
  readonly #synced = new Set<string>();

  /** Makes everything below the folder durable. */
  async sync(folder: string): Promise<void> {
    const present = new Set<string>();
    const folders = [folder];
    for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && entry.name !== HINT) present.add(path);
    }
    for (const path of present) if (!this.#synced.has(path)) await syncPath(path);
    for (const path of folders) await syncPath(path);
    for (const path of this.#synced) if (path.startsWith(folder) && !present.has(path)) this.#synced.delete(path);
    for (const path of present) this.#synced.add(path);
  }
}

/** How many fragments and indexes the table's recorded version has, by LanceDB's own account. */
type Contents = { fragments: number; indexes: number };

/**
 * Removes what the recorded version of a LanceDB table does not use: older versions, and the files of writes that were cut off by
 * SIGKILL or dropped by a rewind. LanceDB itself keeps such files for seven days, since another process might be writing them; a
 * program that is killed often would fill the disk with them.
 *
 * LEFTOVERS-1  It runs while a folder is opened: nobody reads or writes the table, and its newest version is the recorded one.
 * LEFTOVERS-2  A file that the recorded manifest names is kept. A manifest that names fewer files than the table has fragments, or
 *              fewer indexes than it has, is of a format unknown here, and nothing of that kind is removed.
 * LEFTOVERS-3  Older manifests go first, so that none is left without its files.
 */
export async function removeLeftovers(path: string, manifest: string, { fragments, indexes }: Contents): Promise<void> {
  const versions = join(path, "_versions");
  const recorded = await readFile(join(versions, manifest));
  const data = sorted(await namesIn(path, "data"), (name) => recorded.includes(name));
  // An index is named by its UUID, which a manifest holds as bytes.
  const indices = sorted(await namesIn(path, "_indices"), (name) => recorded.includes(bytesOf(name)));
  if (data.used < fragments) return; // LEFTOVERS-2
  const older = (await namesIn(path, "_versions")).filter((name) => name.endsWith(".manifest") && name !== manifest);
  for (const name of older) await rm(join(versions, name)); // LEFTOVERS-3
  if (older.length > 0) await syncPath(versions);
  for (const name of data.unused) if (name.endsWith(".lance")) await rm(join(path, "data", name));
  if (indices.used < indexes) return; // LEFTOVERS-2
  for (const name of indices.unused) await rm(join(path, "_indices", name), { recursive: true });
}

async function namesIn(path: string, folder: string): Promise<string[]> {
  return readdir(join(path, folder)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}

function sorted(names: readonly string[], isUsed: (name: string) => boolean): { used: number; unused: string[] } {
  const unused = names.filter((name) => !isUsed(name));
  return { used: names.length - unused.length, unused };
}

const bytesOf = (uuid: string): Buffer => Buffer.from(uuid.replaceAll("-", ""), "hex");

const setAside = (folder: string): string => `${resolve(folder)}.before-prune`;

/**
 * Replaces a closed store's folder by another. It takes two renames, so a crash may come between them: `undoHalfReplacement`
 * then restores the old folder. The old folder is deleted once the new one is durable.
 */
export async function replaceStoreFolder(folder: string, fresh: string): Promise<void> {
  await rm(setAside(folder), { recursive: true, force: true });
  await rename(folder, setAside(folder));
  await rename(fresh, folder);
  await syncPath(dirname(resolve(folder)));
  await rm(setAside(folder), { recursive: true, force: true });
}

export async function undoHalfReplacement(folder: string): Promise<void> {
  if (!existsSync(folder) && existsSync(setAside(folder))) await rename(setAside(folder), folder);
}

const PROBE = ".probe";
/** About as much as a few commits need. */
const PROBE_BYTES = Buffer.alloc(256 * 1024);

/** Throws if the folder cannot be written now: its disk is full, its quota exhausted, or it is read-only. */
export async function probeDisk(folder: string): Promise<void> {
  const path = join(folder, PROBE);
  try {
    await using file = await open(path, "w", 0o600);
    await file.writeFile(PROBE_BYTES);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    throw isFull
      ? full(`${folder} has no room left (${code})`, error, "free some space on its disk")
      : unavailable(`${folder} cannot be written (${code})`, "check its disk", error);
  } finally {
    await rm(path, { force: true }).catch(() => {});
  }
}

/** Volumes are in it where no other place is named. */
export const VOLUMES_FOLDER = "archive";

const STAGED = /^backup-[0-9A-Z]{26}\.tmp$/;

/**
 * Copies the folder at one moment into a folder inside it, and returns its path. The store keeps running.
 *
 * STAGED-1  Nothing is archived meanwhile, so that the LanceDB tables and volumes match the journal. Their files are written once and then
 *           only removed: hard links keep them, without taking space.
 * STAGED-2  SQLite does not change its main file as long as it does not checkpoint; its log is then only appended to. The main
 *           file and the log's beginning, cut between two transactions, are therefore the journal at that moment.
 * STAGED-3  SQLite's main file is read through a descriptor that stays open as long as the journal: a process that closes a
 *           file loses its locks on it, and then any other could open the folder. (Another process that reads it needs the time
 *           and the memory that commits are waiting for.)
 * STAGED-4  The folder has a single owner, which removes what an earlier one left.
 */
export async function stageCopy(folder: string, copyJournal: (to: string) => Promise<void>): Promise<string> {
  await removeStaged(folder);
  const staged = join(resolve(folder), `backup-${newId()}.tmp`);
  await mkdir(staged, { mode: 0o700 });
  try {
    await using log = await open(logPath(folder));
    const { size } = await log.stat(); // STAGED-2
    await copyOpenFile(log.fd, join(staged, `${JOURNAL}-wal`), size);
    await copyJournal(join(staged, JOURNAL));
    for (const name of await readdir(folder))
      if (name.endsWith(".lance") || name === VOLUMES_FOLDER) await linkFolder(folder, name, staged);
    return staged;
  } catch (error) {
    await rm(staged, { recursive: true, force: true });
    throw error;
  }
}

/** STAGED-4. */
export async function removeStaged(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (STAGED.test(name)) await rm(join(folder, name), { recursive: true, force: true });
}

/** STAGED-1. */
async function linkFolder(folder: string, name: string, staged: string): Promise<void> {
  await mkdir(join(staged, name));
  for (const entry of await readdir(join(folder, name), { withFileTypes: true, recursive: true })) {
    const from = join(entry.parentPath, entry.name);
    // Removed since it was listed: nothing counts that may be removed now.
    if (!existsSync(from)) continue;
    const to = join(staged, relative(folder, from));
    if (entry.isDirectory()) await mkdir(to, { recursive: true });
    else if (entry.isFile() && entry.name !== HINT) {
      await mkdir(dirname(to), { recursive: true });
      // Copies if the file system has no hard links.
      await link(from, to).catch(() => copyFile(from, to));
    }
  }
}
