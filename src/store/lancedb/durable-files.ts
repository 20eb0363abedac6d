import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Rewritten in place by LanceDB and only a hint: it need not survive anything. */
const HINT = "latest_version_hint.json";

/** LanceDB never syncs. Its files are written once and then only removed, so each is synced once, its folders every time. */
export class DurableFiles {
  readonly #synced = new Set<string>();

  /** When it returns, everything that is below the folder now survives a loss of power. */
  async sync(folder: string): Promise<void> {
    const present = new Set<string>();
    const folders = [folder];
    for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && entry.name !== HINT) present.add(path);
    }
    for (const path of present) if (!this.#synced.has(path)) await syncPath(path);
    for (const path of folders) await syncPath(path);
    for (const path of this.#synced) if (path.startsWith(folder) && !present.has(path)) this.#synced.delete(path);
    for (const path of present) this.#synced.add(path);
  }
}

export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
