import { copyFile, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MONIKERS = fileURLToPath(new URL("../monikers", import.meta.url));
const COUNTING_SERVER = fileURLToPath(new URL("./counting-server.js", import.meta.url));

/** The working folder of the product's processes: their monikers, an MCP server, and the record of payments. */
export class Office {
  readonly #folder: string;
  #version = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<Office> {
    const office = new Office(folder);
    await mkdir(join(folder, "monikers"), { recursive: true });
    for (const name of await readdir(MONIKERS)) await copyFile(join(MONIKERS, name), join(folder, "monikers", name));
    const counter = { command: process.execPath, args: [COUNTING_SERVER], env: { PAYMENTS: office.#notes } };
    await writeFile(join(folder, "mcp.json"), JSON.stringify({ mcpServers: { counter } }));
    return office;
  }

  get environment(): Record<string, string> {
    return { EVERSTEP_MONIKERS: join(this.#folder, "monikers"), EVERSTEP_MCP: join(this.#folder, "mcp.json") };
  }

  /** The key of each payment that was started, once per start. */
  async payments(): Promise<string[]> {
    const text = await readFile(this.#notes, "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** Writes a new version of the monikers; a process that reloads uses it from the next step on. */
  async changeCode(): Promise<void> {
    this.#version += 1;
    for (const name of await readdir(MONIKERS)) {
      const place = join(this.#folder, "monikers", name);
      const text = await readFile(join(MONIKERS, name), "utf8");
      // By a rename: a process that starts meanwhile must not read half a file.
      await writeFile(`${place}.new`, `${text}// Version ${this.#version}.\n`);
      await rename(`${place}.new`, place);
    }
  }

  get #notes(): string {
    return join(this.#folder, "payments.log");
  }
}
