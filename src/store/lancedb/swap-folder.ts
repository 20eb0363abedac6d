import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { syncPath } from "./durable-files.ts";

const setAside = (folder: string): string => `${resolve(folder)}.before-prune`;

/**
 * Puts another folder in the place of a store's, which must be closed. Two renames, so a crash can come between them: then
 * `undoHalfSwap` puts the old one back. The old folder goes once the new one is there for good.
 */
export async function swapFolder(folder: string, fresh: string): Promise<void> {
  await rm(setAside(folder), { recursive: true, force: true });
  await rename(folder, setAside(folder));
  await rename(fresh, folder);
  await syncPath(dirname(resolve(folder)));
  await rm(setAside(folder), { recursive: true, force: true });
}

export async function undoHalfSwap(folder: string): Promise<void> {
  if (!existsSync(folder) && existsSync(setAside(folder))) await rename(setAside(folder), folder);
}
