import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { REPOSITORY, readFolder } from "../repository-files.ts";

export type CodeBlock = { path: string | null; code: string };

/** The TypeScript blocks of a page. The first line of each names its file. */
export async function codeBlocks(page: string): Promise<CodeBlock[]> {
  const found = (await readFolder("docs")).find((file) => file.path === page);
  if (!found) throw new Error(`docs/${page} is missing`);
  return [...found.text.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms)].map(([, code = ""]) => ({
    path: /^\/\/ (\S+\.ts)\n/.exec(code)?.[1] ?? null,
    code,
  }));
}

/** Lays the page's files out in an empty folder from which `everstep/moniker` can be imported. */
export async function writeCode(folder: string, blocks: readonly CodeBlock[]): Promise<void> {
  for (const { path, code } of blocks) if (path !== null) await write(join(folder, path), code);
  const sources = ["src/monikers/moniker.ts", "src/monikers/guidance.ts"].map((path) => JSON.stringify(address(path)));
  const zod = JSON.stringify(address("node_modules/zod/index.js"));
  const program = [...sources.map((source) => `export * from ${source};`), `export { z } from ${zod};`, ""].join("\n");
  const exports = { "./moniker": "./moniker.js" };
  await write(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await write(
    join(folder, "node_modules/everstep/package.json"),
    JSON.stringify({ name: "everstep", type: "module", exports }),
  );
  await write(join(folder, "node_modules/everstep/moniker.js"), program);
}

const address = (path: string): string => pathToFileURL(join(REPOSITORY, path)).href;

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
