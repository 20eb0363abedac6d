import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, relative, resolve, sep } from "node:path";
import { newId } from "../../domain/ids.ts";
import { folded } from "../../domain/words.ts";
import { StepError } from "../moniker.ts";
import { ConfinedFolder, OutsideError } from "./confined-folder.ts";
import { linePieces, MOST_WORDS } from "./line-pieces.ts";

/** What agents and people call the workspace, whatever folder it is. */
const PREFIX = "/workspace";
/** The runtime's own folder inside: listed and searched only if named. */
export const RUNTIME_FOLDER = ".everstep";
const LONGEST_PATH = 1024;
export const LARGEST_FILE = 4 * 1024 * 1024;
/** For a file that is not text, such as an image made by a tool. */
const LARGEST_BYTES = 32 * 1024 * 1024;
const MOST_FILES = 10_000;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const WRITE_NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

export type FileContent = string | Uint8Array;
export type Passage = { path: string; line: number; text: string };

/**
 * The only folder that an agent's file tools can reach. Paths are relative to it, or begin with `/workspace/`.
 *
 * WORKSPACE-1  A path that leads out, by `..`, as an absolute path or through a symbolic link, is refused, even if links are
 *              swapped meanwhile (`confined-folder.ts`).
 * WORKSPACE-2  Only text files of a bounded size are read. A file is written completely or not at all.
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

  /** Whether a file or folder of that name exists. */
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

  /** A path relative to the workspace's folder, with forward slashes. */
  protected locate(path: string): string {
    return relative(this.#root, this.#within(path)).split(sep).join("/");
  }

  /** The same for a file to be written; throws if it cannot be. */
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
      await rename(draft, folder.entry(name)); // WORKSPACE-2
      await folder.handle.sync();
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** WORKSPACE-1, WORKSPACE-2: a file may only replace a file, or a link to one inside. */
  async #requireReplaceable(target: string, path: string): Promise<void> {
    const present = await lstat(target).catch(() => null);
    if (!present) return;
    const targetInfo = present.isSymbolicLink() ? await stat(target).catch(() => null) : present;
    if (!targetInfo) throw refused(`${path} is a link that leads nowhere`);
    await this.#confined.requireInside(target);
    if (!targetInfo.isFile()) throw refused(`${path} is not a file`);
  }

  /** Paths of all files, sorted; the runtime's only from within its folder. */
  async list(path = "."): Promise<string[]> {
    const files: string[] = [];
    const first = this.#within(path);
    const folders = [first];
    for (let next = folders.pop(); next !== undefined && files.length < MOST_FILES; next = folders.pop()) {
      const within = next;
      const folder = await refusing(path, () => this.#confined.openFolder(within)).catch((error: unknown) =>
        // A folder that has disappeared or changed meanwhile has nothing to list.
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

  /** Lines that contain any of the words, ignoring case and diacritics. Of very many words only the first are used. */
  async search(words: string[], most = 50): Promise<Passage[]> {
    const searchWords = [...new Set(words.slice(0, MOST_WORDS).map(folded))].filter(Boolean);
    const passages: Passage[] = [];
    for (const path of await this.list()) {
      const text = await this.read(path).catch(() => "");
      for await (const piece of linePieces(text)) {
        const compared = folded(piece.text);
        const isNew = passages.at(-1)?.path !== path || passages.at(-1)?.line !== piece.line;
        if (isNew && searchWords.some((word) => compared.includes(word))) passages.push({ path, ...piece });
        if (passages.length >= most) return passages;
      }
    }
    return passages;
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

/** Errors for paths that no file can have. */
const UNUSABLE_PATH = new Set([
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

/** Explains why a path cannot be used, if a retry would not change it. */
async function refusing<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OutsideError) throw refused(`${path} is outside the workspace`);
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new StepError("file_missing", `${path} does not exist`, { retryable: false, cause: error });
    throw UNUSABLE_PATH.has(code) ? refused(`${path} cannot be the path of a file (${code})`) : error;
  }
}

async function requireFile(file: FileHandle, path: string) {
  const info = await file.stat();
  if (!info.isFile()) throw refused(`${path} is not a file`);
  return info;
}

/** Reads up to `size` bytes: a file that grows meanwhile is not read endlessly. */
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
