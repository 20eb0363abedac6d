import { existsSync } from "node:fs";
import { open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { full, unavailable } from "../store-errors.ts";

/** Rewritten in place by LanceDB and only a hint: it need not survive anything. */
const HINT = "latest_version_hint.json";

/** LanceDB never syncs. Its files are written once and then only removed, so each is synced once, its folders every time. */
export class DurableFiles {
  readonly #synced = new Set<string>();

  /** When it returns, everything that is below the folder now survives a loss of power. */
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

export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const setAside = (folder: string): string => `${resolve(folder)}.before-prune`;

/**
 * Puts another folder in the place of a store's, which must be closed. Two renames, so a crash can come between them: then
 * `undoHalfReplacement` puts the old one back. The old folder goes once the new one is there for good.
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

const NAME = ".probe";
/** About what a few commits need. */
const BYTES = Buffer.alloc(256 * 1024);

/** Throws where the folder cannot be written now: its disk is full, its quota is used up, it is read-only. */
export async function probeDisk(folder: string): Promise<void> {
  const path = join(folder, NAME);
  try {
    await using file = await open(path, "w", 0o600);
    await file.writeFile(BYTES);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    throw isFull
      ? full(`${folder} has no room left (${code})`, error, "free some space on its disk")
      : unavailable(`${folder} cannot be written (${code})`, "see that its disk works", error);
  } finally {
    await rm(path, { force: true }).catch(() => {});
  }
}
