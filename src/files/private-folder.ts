import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve, sep } from "node:path";

/** The permission bits of other users. */
const OTHERS = 0o077;

/**
 * Creates a folder that only its owner can enter. An existing one is closed to others too if it is clearly ours: it is empty or
 * has the named file, and is not a folder with other contents such as the home folder. Otherwise a warning says so.
 */
export function makePrivateFolder(folder: string, ourFile: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Windows has no such modes.
  if (process.platform === "win32" || (statSync(folder).mode & OTHERS) === 0) return;
  if (isOurs(folder, ourFile) && isTightened(folder)) return;
  process.emitWarning(`other users of this machine can read ${resolve(folder)}; close it with chmod 700`, {
    code: "EVERSTEP_OPEN_FOLDER",
  });
}

function isOurs(folder: string, ourFile: string): boolean {
  const path = resolve(folder);
  if ([process.cwd(), homedir()].some((other) => other === path || `${other}${sep}`.startsWith(`${path}${sep}`)))
    return false;
  return existsSync(join(folder, ourFile)) || readdirSync(folder).length === 0;
}

function isTightened(folder: string): boolean {
  try {
    chmodSync(folder, 0o700);
  } catch {
    // It belongs to somebody else, or the file system is read-only: the store's first write reports what that means.
  }
  return (statSync(folder).mode & OTHERS) === 0;
}
