import { constants, read } from "node:fs";
import { copyFile, link, mkdir, open, readdir, stat } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { syncPath } from "./sync-path.ts";

/** A copy is synced every so many bytes, so that nobody else's sync waits long behind it. */
const SYNC_EVERY = 4 << 20;

export type Copied = { files: number; bytes: number; linked_bytes: number };
type CopyOptions = {
  /** An earlier copy, and which of its files never change once written: those are hard-linked. */
  earlier?: { folder: string; isFinal: (path: string) => boolean } | undefined;
  progress?: (copied: Copied) => void;
};

/** Copies a folder into a new one; the copy is durable when this returns. */
export async function copyDurably(from: string, to: string, { earlier, progress }: CopyOptions = {}): Promise<Copied> {
  const copied: Copied = { files: 0, bytes: 0, linked_bytes: 0 };
  const folders = [to];
  await mkdir(to, { mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true, recursive: true })) {
    const source = join(entry.parentPath, entry.name);
    const path = relative(from, source);
    const target = join(to, path);
    if (entry.isDirectory()) {
      await mkdir(target, { recursive: true });
      folders.push(target);
    } else if (entry.isFile()) {
      await mkdir(dirname(target), { recursive: true });
      const { size } = await stat(source);
      const isLinked = earlier?.isFinal(path) && (await linkSame(join(earlier.folder, path), size, target));
      if (!isLinked) await copyFileDurably(source, target);
      copied.files += 1;
      copied[isLinked ? "linked_bytes" : "bytes"] += size;
      progress?.(copied);
    }
  }
  for (const folder of [...folders, dirname(to)]) await syncPath(folder);
  return copied;
}

/** Hard-links the file if the earlier copy has it and the file system can. */
async function linkSame(earlier: string, size: number, target: string): Promise<boolean> {
  try {
    if ((await stat(earlier)).size !== size) return false;
    await link(earlier, target);
    return true;
  } catch {
    return false;
  }
}

async function copyFileDurably(source: string, target: string): Promise<void> {
  // Instant on a file system that shares blocks between files.
  const isCloned = await copyFile(source, target, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL).then(
    () => true,
    () => false,
  );
  if (isCloned) return syncPath(target);
  await using from = await open(source, "r");
  await copyOpenFile(from.fd, target);
}

/** Copies an open file, or its beginning; the copy is durable when this returns. */
export async function copyOpenFile(descriptor: number, target: string, bytes = Infinity): Promise<void> {
  await using to = await open(target, "w", 0o600);
  const piece = Buffer.allocUnsafe(SYNC_EVERY);
  for (let at = 0; at < bytes; ) {
    const { bytesRead } = await promisify(read)(descriptor, piece, 0, Math.min(piece.length, bytes - at), at);
    if (bytesRead === 0) break;
    await to.writeFile(piece.subarray(0, bytesRead));
    await to.datasync();
    at += bytesRead;
  }
  await to.sync();
}
