import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY, readFolder } from "../repository-files.ts";

export type CodeBlock = { path: string | null; code: string };

/** The TypeScript blocks of a page. The first line of each names its file. */
export async function codeBlocks(page: string): Promise<CodeBlock[]> {
  const docFile = (await readFolder("docs")).find((file) => file.path === page);
  if (!docFile) throw new Error(`docs/${page} is missing`);
  return [...docFile.text.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms)].map(([, code = ""]) => ({
    path: /^\/\/ (\S+\.ts)\n/.exec(code)?.[1] ?? null,
    code,
  }));
}

/** Writes the page's files to an empty folder from which `everstep/moniker` and `everstep/client` can be imported. */
export async function writeCode(folder: string, blocks: readonly CodeBlock[]): Promise<void> {
  for (const { path, code } of blocks) if (path !== null) await write(join(folder, path), code);
  await write(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  // The sources under the package's name; test/package tests the package itself.
  const exports = { "./moniker": "./moniker.ts", "./client": "./client.ts" };
  await write(join(folder, "node_modules/everstep/package.json"), JSON.stringify({ type: "module", exports }));
  await symlink(join(REPOSITORY, "src/monikers/public.ts"), join(folder, "node_modules/everstep/moniker.ts"));
  await symlink(join(REPOSITORY, "src/client/client.ts"), join(folder, "node_modules/everstep/client.ts"));
  const { compilerOptions } = JSON.parse(await readFile(join(REPOSITORY, "tsconfig.json"), "utf8")) as TsConfig;
  delete compilerOptions.paths;
  const typeRoots = [join(REPOSITORY, "node_modules/@types")];
  await write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots } }));
}

/** Type-checks the files written by `writeCode`. */
export async function assertTypes(folder: string): Promise<void> {
  const compiler = join(REPOSITORY, "node_modules/typescript/bin/tsc");
  // Two versions of zod in one program would keep the compiler busy for minutes, and it ignores SIGTERM.
  const limits = { timeout: 50_000, killSignal: "SIGKILL" } as const;
  await promisify(execFile)(process.execPath, [compiler, "--project", folder], limits).catch((error: unknown) => {
    assert.fail((error as { stdout?: string }).stdout || String(error));
  });
}

type TsConfig = { compilerOptions: { paths?: object } };

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
