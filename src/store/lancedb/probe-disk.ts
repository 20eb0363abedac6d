import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { full, unavailable } from "../store-errors.ts";

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
