import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";

/** Everstep's own code: a moniker that imports it by its path gets what the program itself uses, with the same classes. */
const EVERSTEP = resolve(import.meta.dirname, "..") + sep;
const CODE = /\.[cm]?[jt]s$/;
/** Files that one folder may add; more are not prompts. */
const MOST_IN_FOLDER = 1000;
/** Larger files count by their size and time of change. */
const LARGEST_BYTES = 1024 * 1024;
const VERSION_CHARACTERS = 12;

type OwnFile = {
  /** Undefined where it is too large to be kept. */
  text: string | undefined;
  digest: string;
  /** The files that paths in it lead to. */
  names: readonly string[];
};

/** Whether a file belongs to the person who wrote the moniker: no package, and not Everstep's. */
export const isOwnFile = (path: string): boolean =>
  !path.includes(`${sep}node_modules${sep}`) && !path.startsWith(EVERSTEP);

/**
 * The files that a moniker consists of, as they were at one moment: its own file, and from there every file that a path in the
 * code leads to.
 *
 * FILES-1  A path is any quoted text that, taken from the folder of the file it is in, leads to a file or a folder: an import, static
 *          or not, and a prompt that is read. A folder stands for the files in it that are not code.
 * FILES-2  A file's version is a hash over it and all that can be reached from it, by relative paths: it is the same on every
 *          machine, and changes whenever anything of that changes.
 * FILES-3  What did not change is shared with the files of the moment before, so that old ones cost only what changed.
 * FILES-4  Files are known by their real paths, as Node's modules are.
 */
export class OwnFiles {
  readonly #files = new Map<string, OwnFile>();
  readonly #versions = new Map<string, string>();

  /** The file and what its code leads to; `before` is what the same call answered earlier. */
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

  /** What the file contained; undefined where it is none of these. */
  text(path: string): string | undefined {
    return this.#files.get(path)?.text;
  }

  /** FILES-2. Undefined where the file is none of these. */
  version(path: string): string | undefined {
    if (!this.#files.has(path)) return undefined;
    const known = this.#versions.get(path);
    if (known !== undefined) return known;
    const from = dirname(path);
    const lines = [...this.reachable(path)].map(
      (own) => `${relative(from, own).split(sep).join("/")} ${this.#files.get(own)?.digest}`,
    );
    const version = hash(lines.sort().join("\n")).slice(0, VERSION_CHARACTERS);
    this.#versions.set(path, version);
    return version;
  }

  /** The file and everything that its code leads to. */
  reachable(path: string): Set<string> {
    const found = new Set([path]);
    for (const own of found)
      for (const name of this.#files.get(own)?.names ?? []) if (this.#files.has(name)) found.add(name);
    return found;
  }
}

/** A version for files that belong together, whatever leads from one to another. */
export async function versionOfFolder(folder: string): Promise<string> {
  const paths = await filesIn(folder, () => true);
  const lines = await Promise.all(
    paths.map(async (path) => `${relative(folder, path).split(sep).join("/")} ${hash(await readFile(path))}`),
  );
  return hash(lines.sort().join("\n")).slice(0, VERSION_CHARACTERS);
}

const hash = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");

/** Null where there is no such file any more. */
async function readOwnFile(path: string, before: OwnFile | undefined): Promise<OwnFile | null> {
  try {
    const { size, mtimeMs } = await stat(path);
    if (size > LARGEST_BYTES) return { text: undefined, digest: `${size} ${mtimeMs}`, names: [] };
    const bytes = await readFile(path);
    const digest = hash(bytes);
    const text = bytes.toString("utf8");
    // Also where it is as it was: a file that it names may be new.
    const names = CODE.test(path) ? await namedIn(text, path) : [];
    const isSame = before?.digest === digest && before.names.join("\n") === names.join("\n");
    return isSame ? before : { text, digest, names }; // FILES-3
  } catch {
    return null;
  }
}

/** What stands between quotes, or between a quote and a placeholder. */
const QUOTED = /["'`]|\$\{[^}]*\}/;
const PATH = /^[\p{L}\p{N}_@. +-]*(?:\/[\p{L}\p{N}_@. +-]+)*\/?$/u;
const LONGEST_PATH = 300;

/** FILES-1. */
async function namedIn(code: string, path: string): Promise<string[]> {
  const folder = dirname(path);
  const texts = new Set(code.split(QUOTED).map((text) => text.replace(/^\//, "")));
  const paths = [...texts].filter((text) => text !== "" && text.length <= LONGEST_PATH && PATH.test(text));
  const targets = new Set(paths.map((text) => resolve(folder, text)));
  const found = await Promise.all([...targets].map((target) => filesAt(target, path)));
  return [...new Set(found.flat())].filter((own) => own !== path).sort();
}

async function filesAt(named: string, from: string): Promise<string[]> {
  const target = await realpath(named).catch(() => null); // FILES-4
  if (target === null || !isOwnFile(target)) return [];
  const found = await stat(target).catch(() => null);
  if (found?.isFile()) return [target];
  // A folder that the code itself is in is not a folder of prompts.
  if (!found?.isDirectory() || from.startsWith(target + sep) || target === sep) return [];
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
