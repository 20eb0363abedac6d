import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, relative, resolve, sep } from "node:path";
import { newId } from "../../domain/ids.ts";
import { folded } from "../../domain/words.ts";
import { StepError } from "../moniker.ts";
import { ConfinedFolder, OutsideError } from "./confined-folder.ts";
import { linePieces, MOST_WORDS } from "./line-pieces.ts";

/** The name by which agents and people call the workspace, whatever folder it is. */
const PREFIX = "/workspace";
/** A folder in it that is the runtime's own: it is listed and searched only where it is named. */
export const RUNTIME_FOLDER = ".everstep";
const LONGEST_PATH = 1024;
export const LARGEST_FILE = 4 * 1024 * 1024;
/** Of a file that is no text: an image that a tool made, say. */
const LARGEST_BYTES = 32 * 1024 * 1024;
const MOST_FILES = 10_000;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const WRITE_NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

export type FileContent = string | Uint8Array;
export type Passage = { path: string; line: number; text: string };

/**
 * The only folder that an agent's file tools reach. Paths are relative to it, or begin with `/workspace/`.
 *
 * W1  A path that leads out, by `..`, as an absolute path or through a symbolic link, is refused, also where links are exchanged
 *     meanwhile (`confined-folder.ts`).
 * W2  Files that are read are text of a bounded size; others are refused. A file is written whole or not at all.
 */
export class Workspace {
  readonly #root: string;
  readonly #confined: ConfinedFolder;

  constructor(root: string) {
    this.#root = resolve(root);
    this.#confined = new ConfinedFolder(this.#root);
  }

  async read(path: string): Promise<string> {
    const target = this.#within(path);
    await using file = await refusing(path, () => this.#confined.openFile(target));
    const { size } = await requireFile(file, path);
    if (size > LARGEST_FILE) throw refused(`${path} has ${size} bytes; at most ${LARGEST_FILE} can be read`);
    const bytes = await readFirst(file, size);
    if (bytes.includes(0)) throw refused(`${path} is not a text file`);
    return bytes.toString("utf8");
  }

  /** Whether a file or folder of that name is there. */
  async has(path: string): Promise<boolean> {
    const target = this.#within(path);
    return refusing(path, () => this.#confined.requireInside(target)).then(
      () => true,
      (error: unknown) => (isMissing(error) ? false : Promise.reject(error as Error)),
    );
  }

  async write(path: string, content: FileContent): Promise<void> {
    const target = join(this.#root, this.writable(path, content));
    await refusing(path, () => this.#write(target, path, content));
  }

  /** Where a path leads, from the workspace's folder, with forward slashes. */
  protected locate(path: string): string {
    return relative(this.#root, this.#within(path)).split(sep).join("/");
  }

  /** The same for a file that is to be written, or an error. */
  protected writable(path: string, content: FileContent): string {
    const most = typeof content === "string" ? LARGEST_FILE : LARGEST_BYTES;
    if (Buffer.byteLength(content) > most) throw refused(`a file has at most ${most} bytes`);
    const at = this.locate(path);
    if (at === "") throw refused(`${path} is not a file`);
    return at;
  }

  async #write(target: string, path: string, content: FileContent): Promise<void> {
    await mkdir(this.#root, { recursive: true });
    const names = relative(this.#root, dirname(target)).split(sep).filter(Boolean);
    await using folder = await this.#confined.makeFolder(names);
    const name = basename(target);
    await this.#requireReplaceable(folder.entry(name), path);
    const draft = folder.entry(`${name}.${newId()}.tmp`);
    try {
      await using file = await open(draft, WRITE_NEW);
      await file.writeFile(content);
      await file.sync();
      await rename(draft, folder.entry(name)); // W2
      await folder.handle.sync();
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
    await this.#confined.requireInside(target);
    if (!meant.isFile()) throw refused(`${path} is not a file`);
  }

  /** Paths of all files, sorted; those of the runtime only from within its folder. */
  async list(path = "."): Promise<string[]> {
    const files: string[] = [];
    const first = this.#within(path);
    const folders = [first];
    for (let next = folders.pop(); next !== undefined && files.length < MOST_FILES; next = folders.pop()) {
      const within = next;
      const folder = await refusing(path, () => this.#confined.openFolder(within)).catch((error: unknown) =>
        // One that was there a moment ago and is gone, or is something else by now, has nothing to list.
        isMissing(error) || within !== first ? null : Promise.reject(error as Error),
      );
      if (folder === null) continue;
      await using opened = folder;
      for (const entry of await ConfinedFolder.entries(opened)) {
        const isOwn = within === this.#root && entry.name === RUNTIME_FOLDER;
        if (entry.isDirectory() && !isOwn) folders.push(join(within, entry.name));
        else if (entry.isFile() && !entry.name.endsWith(".tmp")) files.push(join(within, entry.name));
      }
    }
    return files
      .slice(0, MOST_FILES)
      .map((file) => relative(this.#root, file).split(sep).join("/"))
      .sort();
  }

  /** Lines that contain any of the words, letter case and diacritics aside. Of very many words the first are looked for. */
  async search(words: string[], most = 50): Promise<Passage[]> {
    const wanted = [...new Set(words.slice(0, MOST_WORDS).map(folded))].filter(Boolean);
    const found: Passage[] = [];
    for (const path of await this.list()) {
      const text = await this.read(path).catch(() => "");
      for await (const piece of linePieces(text)) {
        const compared = folded(piece.text);
        const isNew = found.at(-1)?.path !== path || found.at(-1)?.line !== piece.line;
        if (isNew && wanted.some((word) => compared.includes(word))) found.push({ path, ...piece });
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
}

const refused = (why: string): StepError => new StepError("file_refused", why, { retryable: false });

const isMissing = (error: unknown): boolean => error instanceof StepError && error.code === "file_missing";

/** What the file system says of a path that no file can have. */
const HOPELESS = new Set([
  "ENAMETOOLONG",
  "ENOTDIR",
  "ELOOP",
  "EEXIST",
  "EISDIR",
  "EINVAL",
  "ENXIO",
  "EACCES",
  "EPERM",
]);

/** Says why a path cannot be used, where trying again does not change it. */
async function refusing<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OutsideError) throw refused(`${path} is outside the workspace`);
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new StepError("file_missing", `${path} does not exist`, { retryable: false, cause: error });
    throw HOPELESS.has(code) ? refused(`${path} cannot be the path of a file (${code})`) : error;
  }
}

async function requireFile(file: FileHandle, path: string) {
  const found = await file.stat();
  if (!found.isFile()) throw refused(`${path} is not a file`);
  return found;
}

/** So many bytes, or fewer where the file ends before: one that grows meanwhile is not read without end. */
async function readFirst(file: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await file.read(bytes, length, size - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}
