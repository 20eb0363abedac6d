import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";

/** Everstep's own code: a moniker that imports it by path shares the program's classes. */
const EVERSTEP = resolve(import.meta.dirname, "..") + sep;
const CODE = /\.[cm]?[jt]s$/;
/** The most files of one folder; more are not prompts. */
const MOST_IN_FOLDER = 1000;
/** Larger files are versioned by size and modification time. */
const LARGEST_BYTES = 1024 * 1024;
const VERSION_CHARACTERS = 12;

type OwnFile = {
  /** Undefined if too large to keep. */
  text: string | undefined;
  digest: string;
  /** The files that paths in it refer to. */
  names: readonly string[];
};

/** Whether a file belongs to the moniker's author: not in a package, and not Everstep's. */
export const isOwnFile = (path: string): boolean =>
  !path.includes(`${sep}node_modules${sep}`) && !path.startsWith(EVERSTEP);

/**
 * The files of a moniker at one moment: its own file and every file that paths in the code refer to, recursively.
 *
 * FILES-1  A path is any quoted text that, relative to the folder of its file, names a file or a folder: an import, static or
 *          not, or a prompt that is read. A folder stands for the files in it that are not code.
 * FILES-2  A file's version is a hash over it and everything reachable from it, by relative paths: it is the same on every
 *          machine and changes whenever any of that changes.
 * FILES-3  Unchanged files are shared with the previous snapshot, so that old ones cost only what changed.
 * FILES-4  Files are identified by their real paths, like Node's modules.
 */
export class OwnFiles {
  readonly #files = new Map<string, OwnFile>();
  readonly #versions = new Map<string, string>();

  /** The file and everything its code refers to; `before` is the previous snapshot. */
  static async read(entry: string, before?: OwnFiles): Promise<OwnFiles> {
    const files = new OwnFiles();
    const waiting = [entry];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (files.#files.has(path)) continue;
      const file = await readOwnFile(path, before === undefined ? undefined : before.#files.get(path));
      if (!file) continue;
      files.#files.set(path, file);
      waiting.push(...file.names);
    }
    return files;
  }

  /** The file's content; undefined if it is not in the snapshot. */
  text(path: string): string | undefined {
    return this.#files.get(path)?.text;
  }

  /** FILES-2. Undefined if the file is not in the snapshot. */
  version(path: string): string | undefined {
    if (!this.#files.has(path)) return undefined;
    const cached = this.#versions.get(path);
    if (cached !== undefined) return cached;
    const from = dirname(path);
    const lines = [...this.reachable(path)].map(
      (own) => `${relative(from, own).split(sep).join("/")} ${this.#files.get(own)?.digest}`,
    );
    const version = hash(lines.sort().join("\n")).slice(0, VERSION_CHARACTERS);
    this.#versions.set(path, version);
    return version;
  }

  /** The file and everything its code refers to. */
  reachable(path: string): Set<string> {
    const reached = new Set([path]);
    for (const own of reached)
      for (const name of this.#files.get(own)?.names ?? []) if (this.#files.has(name)) reached.add(name);
    return reached;
  }
}

/** A version for all files of a folder, whatever refers to what. */
export async function versionOfFolder(folder: string): Promise<string> {
  const paths = await filesIn(folder, () => true);
  const lines = await Promise.all(
    paths.map(async (path) => `${relative(folder, path).split(sep).join("/")} ${hash(await readFile(path))}`),
  );
  return hash(lines.sort().join("\n")).slice(0, VERSION_CHARACTERS);
}

const hash = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");

/** Null if the file no longer exists. */
async function readOwnFile(path: string, before: OwnFile | undefined): Promise<OwnFile | null> {
  try {
    const { size, mtimeMs } = await stat(path);
    if (size > LARGEST_BYTES) return { text: undefined, digest: `${size} ${mtimeMs}`, names: [] };
    const bytes = await readFile(path);
    const digest = hash(bytes);
    const text = bytes.toString("utf8");
    // Even if the file is unchanged: a file that it names may be new.
    const names = CODE.test(path) ? await namedIn(text, path) : [];
    const isSame = before?.digest === digest && before.names.join("\n") === names.join("\n");
    return isSame ? before : { text, digest, names }; // FILES-3
  } catch {
    return null;
  }
}

/** Text between quotes, or between a quote and a placeholder. */
const QUOTED = /["'`]|\$\{[^}]*\}/;
const PATH = /^[\p{L}\p{N}_@. +-]*(?:\/[\p{L}\p{N}_@. +-]+)*\/?$/u;
const LONGEST_PATH = 300;

/** FILES-1. */
async function namedIn(code: string, path: string): Promise<string[]> {
  const folder = dirname(path);
  const texts = new Set(code.split(QUOTED).map((text) => text.replace(/^\//, "")));
  const paths = [...texts].filter((text) => text !== "" && text.length <= LONGEST_PATH && PATH.test(text));
  const targets = new Set(paths.map((text) => resolve(folder, text)));
  const files = await Promise.all([...targets].map((target) => filesAt(target, path)));
  return [...new Set(files.flat())].filter((own) => own !== path).sort();
}

async function filesAt(named: string, from: string): Promise<string[]> {
  const target = await realpath(named).catch(() => null); // FILES-4
  if (target === null || !isOwnFile(target)) return [];
  const info = await stat(target).catch(() => null);
  if (info?.isFile()) return [target];
  // A folder that contains the code itself is not a folder of prompts.
  if (!info?.isDirectory() || from.startsWith(target + sep) || target === sep) return [];
  return filesIn(target, (name) => !CODE.test(name));
}

async function filesIn(folder: string, isWanted: (name: string) => boolean): Promise<string[]> {
  const files: string[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && files.length < MOST_IN_FOLDER; next = folders.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      if (entry.name === "node_modules" || entry.name.startsWith(".")) continue;
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && isWanted(entry.name)) files.push(path);
    }
  }
  return files.slice(0, MOST_IN_FOLDER);
}
