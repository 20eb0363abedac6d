import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { scratchFolder } from "../store/scratch-folder.ts";

/** A folder of monikers that a test writes and changes. */
export class MonikerFiles implements AsyncDisposable {
  readonly folder: string;
  readonly #dispose: () => PromiseLike<void>;

  private constructor(folder: string, dispose: () => PromiseLike<void>) {
    this.folder = folder;
    this.#dispose = dispose;
  }

  static async with(files: Record<string, string>): Promise<MonikerFiles> {
    const scratch = await scratchFolder();
    const made = new MonikerFiles(join(scratch.path, "monikers"), () => scratch[Symbol.asyncDispose]());
    await mkdir(made.folder);
    await made.write(files);
    return made;
  }

  async write(files: Record<string, string>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.folder, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    }
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.folder, name), { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}

/** A moniker's file: `says` is an expression for its text, `head` precedes it, `more` has further fields. */
export const monikerFile = (
  name: string,
  says: string,
  { head = "", kind = "finite", more = "" }: { head?: string; kind?: string; more?: string } = {},
): string => `import { defineMoniker, z } from "everstep/moniker";
${head}
export default defineMoniker({
  name: "${name}",
  kind: "${kind}",
  description: "Says something.",
  params: z.looseObject({}),
  async step({ step, state, guidance }: { step: string; state: any; guidance?: any[] }, context: any) {
    return { step, next_step: "1", state, text: String(${says}), done: ${kind === "finite"} };
  },
  ${more}
});
`;
