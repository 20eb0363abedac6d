import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Entry } from "./entries.ts";

const ROOT = resolve(import.meta.dirname, "..");
/** The path of another file of ours in an import or export. */
const RELATIVE = /(from |import\()"(\.[^"]+)\.ts"/g;

type DeclarationOptions = { folder: string; entries: readonly Entry[] };

/** Writes the declarations of the entries into a folder, with those that they refer to and no others. */
export function writeDeclarations({ folder, entries }: DeclarationOptions): void {
  compile(folder, entries);
  const reached = new Set(entries.map(({ source }) => join(folder, source.replace(/\.ts$/, ".d.ts"))));
  for (const file of reached) {
    const text = readFileSync(file, "utf8");
    for (const [, , path] of text.matchAll(RELATIVE)) reached.add(resolve(dirname(file), `${path}.d.ts`));
    // The form that every compiler resolves to a declaration.
    writeFileSync(file, text.replace(RELATIVE, '$1"$2.js"'));
  }
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    if (name.endsWith(".d.ts") && !reached.has(join(folder, name))) rmSync(join(folder, name));
}

function compile(folder: string, entries: readonly Entry[]): void {
  const sources = join(ROOT, "src");
  const project = join(dirname(folder), "tsconfig.json");
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: sources,
    outDir: folder,
    typeRoots: [join(ROOT, "node_modules/@types")],
  };
  const files = entries.map(({ source }) => join(sources, source));
  writeFileSync(project, JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] }));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" });
  rmSync(project);
}
