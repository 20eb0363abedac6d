import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readlink, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";

const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const READ_FILE = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
const READ_FOLDER = O_RDONLY | O_DIRECTORY;

/** Linux shows here what an open handle refers to, and lets a folder be addressed by its handle. */
const HANDLES = process.platform === "linux" ? "/proc/self/fd" : null;
/** Attempts to enter a folder that others create or remove at the same time. */
const MOST_TRIES = 5;

/** A path leads out of the folder. */
export class OutsideError extends Error {
  constructor() {
    super("the path leads out of the folder");
  }
}

/** An open folder inside the root: operations apply to this one, whatever its path refers to by then. */
export type OpenFolder = AsyncDisposable & {
  /** The path of an entry, for file system calls. */
  entry: (name: string) => string;
  handle: FileHandle;
};

/**
 * Opens files and folders below a root, where other processes may swap files, folders and links at any moment.
 *
 * CONFINED-1  The handle is checked, not the path: a link swapped between check and open cannot lead out.
 * CONFINED-2  Entries are created, listed, renamed and removed through an open, checked folder.
 *
 * Links to places inside may be followed. Systems without /proc/self/fd compare the handle with the path, resolved again: a
 * swap is noticed there unless it is undone between two calls.
 */
export class ConfinedFolder {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Opens a file or other entry, without reading from it. */
  openFile(path: string): Promise<FileHandle> {
    return this.#open(path, READ_FILE);
  }

  async openFolder(path: string): Promise<OpenFolder> {
    return toFolder(await this.#open(path, READ_FOLDER | O_NOFOLLOW), path);
  }

  /** Opens a folder by the names that lead to it from the root, creating the missing ones. */
  async makeFolder(names: readonly string[]): Promise<OpenFolder> {
    let folder = await this.openFolder(this.#root);
    for (const name of names) {
      await using parent = folder;
      folder = await this.#enter(parent, name);
    }
    return folder;
  }

  /** Resolves a path and requires that it leads inside. Throws if it leads nowhere. */
  async requireInside(path: string): Promise<string> {
    const [root, real] = [await realpath(this.#root), await realpath(path)];
    if (!isBelow(root, real)) throw new OutsideError();
    return real;
  }

  /** Names and kinds of a folder's entries. */
  static entries(folder: OpenFolder) {
    return readdir(folder.entry("."), { withFileTypes: true });
  }

  async #enter(parent: OpenFolder, name: string): Promise<OpenFolder> {
    const path = parent.entry(name);
    for (let tries = 1; ; tries++) {
      try {
        return toFolder(await this.#checked(await open(path, READ_FOLDER), path), path);
      } catch (error) {
        if (!hasCode(error, "ENOENT") || tries === MOST_TRIES) throw error;
      }
      // `mkdir` follows no link: a dangling one blocks it.
      await mkdir(path).catch((error: unknown) => {
        if (!hasCode(error, "EEXIST") || tries === MOST_TRIES) throw error;
      });
    }
  }

  async #open(path: string, flags: number): Promise<FileHandle> {
    const real = await this.requireInside(path);
    return this.#checked(await open(real, flags), real);
  }

  /** CONFINED-1. */
  async #checked(handle: FileHandle, path: string): Promise<FileHandle> {
    try {
      const root = await realpath(this.#root);
      if (!isBelow(root, await placeOf(handle, path))) throw new OutsideError();
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
}

/** CONFINED-2. */
const toFolder = (handle: FileHandle, path: string): OpenFolder => ({
  handle,
  entry: (name) => join(HANDLES === null ? path : `${HANDLES}/${handle.fd}`, name),
  [Symbol.asyncDispose]: () => handle.close(),
});

async function placeOf(handle: FileHandle, path: string): Promise<string> {
  if (HANDLES !== null) return readlink(`${HANDLES}/${handle.fd}`);
  const [opened, real] = [await handle.stat({ bigint: true }), await realpath(path)];
  const there = await stat(real, { bigint: true });
  if (opened.dev !== there.dev || opened.ino !== there.ino || (await realpath(path)) !== real) throw new OutsideError();
  return real;
}

const isBelow = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
