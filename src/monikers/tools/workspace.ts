import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize, relative, resolve, sep } from "node:path";
import { newId } from "../../domain/ids.ts";
import { folded } from "../../domain/words.ts";
import { StepError } from "../moniker.ts";

/** The name by which agents and people call the workspace, whatever folder it is. */
const PREFIX = "/workspace";
const LONGEST_PATH = 1024;
const LARGEST_FILE = 4 * 1024 * 1024;
const MOST_FILES = 10_000;

export type Passage = { path: string; line: number; text: string };

/**
 * The only folder that an agent's file tools reach. Paths are relative to it, or begin with `/workspace/`.
 *
 * W1  A path that leads out, by `..`, as an absolute path or through a symbolic link, is refused.
 * W2  Files are text of a bounded size; others are refused. A file is written whole or not at all.
 */
export class Workspace {
  readonly #root: string;

  constructor(root: string) {
    this.#root = resolve(root);
  }

  async read(path: string): Promise<string> {
    const target = await this.#existing(path);
    await using file = await openFile(target, path);
    const { size } = await requireFile(file, path);
    if (size > LARGEST_FILE) throw refused(`${path} has ${size} bytes; at most ${LARGEST_FILE} can be read`);
    const bytes = await file.readFile();
    if (bytes.includes(0)) throw refused(`${path} is not a text file`);
    return bytes.toString("utf8");
  }

  /** Whether a file or folder of that name is there. */
  async has(path: string): Promise<boolean> {
    return this.#existing(path).then(
      () => true,
      (error: unknown) => (isMissing(error) ? false : Promise.reject(error as Error)),
    );
  }

  async write(path: string, text: string): Promise<void> {
    if (Buffer.byteLength(text) > LARGEST_FILE) throw refused(`a file has at most ${LARGEST_FILE} bytes`);
    await refusing(path, () => this.#write(this.#within(path), path, text));
  }

  async #write(target: string, path: string, text: string): Promise<void> {
    await mkdir(this.#root, { recursive: true });
    await this.#requireInside(await nearestExisting(dirname(target)), path); // W1: before any folder is made
    await mkdir(dirname(target), { recursive: true });
    await this.#requireInside(dirname(target), path);
    await this.#requireReplaceable(target, path);
    const draft = `${target}.${newId()}.tmp`;
    try {
      await using file = await open(draft, "wx");
      await file.writeFile(text);
      await file.sync();
      await rename(draft, target); // W2
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** W1, W2: only a file makes way for a file, and a link only where it leads to one inside. */
  async #requireReplaceable(target: string, path: string): Promise<void> {
    const present = await lstat(target).catch(() => null);
    if (!present) return;
    const meant = present.isSymbolicLink() ? await stat(target).catch(() => null) : present;
    if (!meant) throw refused(`${path} is a link that leads nowhere`);
    await this.#requireInside(target, path);
    if (!meant.isFile()) throw refused(`${path} is not a file`);
  }

  /** Paths of all files, sorted. */
  async list(path = "."): Promise<string[]> {
    const folder = await this.#existing(path).catch((error: unknown) =>
      isMissing(error) ? null : Promise.reject(error as Error),
    );
    if (folder === null) return [];
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".tmp")).slice(0, MOST_FILES);
    return files.map((entry) => relative(this.#root, join(entry.parentPath, entry.name)).split(sep).join("/")).sort();
  }

  /** Lines that contain any of the words, letter case and diacritics aside. */
  async search(words: string[], most = 50): Promise<Passage[]> {
    const wanted = words.map(folded).filter(Boolean);
    const found: Passage[] = [];
    for (const path of await this.list()) {
      const text = await this.read(path).catch(() => "");
      for (const [index, line] of text.split("\n").entries()) {
        const compared = folded(line);
        if (wanted.some((word) => compared.includes(word))) found.push({ path, line: index + 1, text: line.trim() });
        if (found.length >= most) return found;
      }
    }
    return found;
  }

  #within(path: string): string {
    if (path.length === 0 || path.length > LONGEST_PATH || path.includes("\0")) throw refused("that is not a path");
    const local = path === PREFIX || path.startsWith(`${PREFIX}/`) ? `.${path.slice(PREFIX.length)}` : path;
    if (isAbsolute(local)) throw refused(`${path} is outside the workspace`);
    const target = resolve(this.#root, normalize(local));
    if (target !== this.#root && !target.startsWith(this.#root + sep))
      throw refused(`${path} is outside the workspace`);
    return target;
  }

  async #existing(path: string): Promise<string> {
    const target = this.#within(path);
    await refusing(path, () => this.#requireInside(target, path));
    return target;
  }

  async #requireInside(target: string, path: string): Promise<void> {
    const [root, real] = [await realpath(this.#root), await realpath(target)];
    if (real !== root && !real.startsWith(root + sep)) throw refused(`${path} is outside the workspace`);
  }
}

const refused = (why: string): StepError => new StepError("file_refused", why, { retryable: false });

const isMissing = (error: unknown): boolean => error instanceof StepError && error.code === "file_missing";

/** What the file system says of a path that no file can have. */
const HOPELESS = new Set(["ENAMETOOLONG", "ENOTDIR", "ELOOP", "EEXIST", "EISDIR", "EINVAL"]);

/** Says why a path cannot be used, where trying again does not change it. */
async function refusing(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new StepError("file_missing", `${path} does not exist`, { retryable: false, cause: error });
    throw HOPELESS.has(code) ? refused(`${path} cannot be the path of a file (${code})`) : error;
  }
}

async function openFile(target: string, path: string): Promise<FileHandle> {
  return open(target, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw new StepError("file_missing", `${path} cannot be opened`, { retryable: false, cause: error });
  });
}

async function requireFile(file: FileHandle, path: string) {
  const found = await file.stat();
  if (!found.isFile()) throw refused(`${path} is not a file`);
  return found;
}

async function nearestExisting(folder: string): Promise<string> {
  const found = await stat(folder).catch(() => null);
  return found ? folder : nearestExisting(dirname(folder));
}
