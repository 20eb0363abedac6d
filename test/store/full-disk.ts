import { execFile } from "node:child_process";
import { rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Mounted } from "./mounts.ts";

const run = promisify(execFile);
const ballastOf = (disk: Mounted): string => join(disk.folder, "ballast");

/** Leaves that many bytes free. */
export async function fillUp(disk: Mounted, free: number): Promise<void> {
  // Space reserved for root is free to root's processes, and only root can mount a disk.
  const { bfree, bsize } = await statfs(disk.folder);
  const bytes = bfree * bsize - free;
  if (bytes <= 0) return;
  // The store may take some of the space meanwhile; the disk is full then as well.
  await run("fallocate", ["--length", String(bytes), ballastOf(disk)]).catch(unlessFull);
}

function unlessFull(error: Error & { stderr?: string }): void {
  if (!error.stderr?.includes("No space left")) throw error;
}

export async function makeSpace(disk: Mounted): Promise<void> {
  await rm(ballastOf(disk), { force: true });
}
