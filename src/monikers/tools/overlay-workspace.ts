import { type FileContent, RUNTIME_FOLDER, Workspace } from "./workspace.ts";

/** A workspace that keeps writes in memory, where its own reads see them. The folder is unchanged. */
export class OverlayWorkspace extends Workspace {
  readonly #written = new Map<string, FileContent>();

  override async write(path: string, content: FileContent): Promise<void> {
    this.#written.set(this.writable(path, content), content);
  }

  override async read(path: string): Promise<string> {
    const written = this.#written.get(this.locate(path));
    if (written === undefined) return super.read(path);
    return typeof written === "string" ? written : Buffer.from(written).toString("utf8");
  }

  override async has(path: string): Promise<boolean> {
    const at = this.locate(path);
    const isWritten = [...this.#written.keys()].some((file) => file === at || file.startsWith(`${at}/`));
    return isWritten || super.has(path);
  }

  override async list(path = "."): Promise<string[]> {
    const at = this.locate(path);
    const written = [...this.#written.keys()].filter((file) =>
      at === "" ? !file.startsWith(`${RUNTIME_FOLDER}/`) : file.startsWith(`${at}/`),
    );
    const present = written.length > 0 && !(await super.has(path)) ? [] : await super.list(path);
    return [...new Set([...present, ...written])].sort();
  }
}
