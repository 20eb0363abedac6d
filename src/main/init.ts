import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { EverstepError } from "../domain/errors.ts";
import { DEVELOPMENT, projectFiles, SCRIPTS } from "./init-files.ts";

const SETTINGS = new URL("../../.env.example", import.meta.url);
/** Files that a project may have before; they are left as they are. */
const KEPT = ["package.json", ".gitignore"];

/** Makes a project in a folder and says what to do next. */
export async function init(named: string): Promise<void> {
  const folder = resolve(named);
  const files = { ...projectFiles(packageName(folder)), ".env.example": await readFile(SETTINGS, "utf8") };
  const present = Object.keys(files).filter((path) => existsSync(join(folder, path)));
  const taken = present.filter((path) => !KEPT.includes(path));
  if (taken.length > 0)
    throw new EverstepError(
      "project_exists",
      `${folder} has ${taken.join(", ")} already, and nothing was written`,
      "name another folder: everstep init FOLDER",
    );
  for (const [path, text] of Object.entries(files)) {
    if (present.includes(path)) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    // `wx`: what appeared meanwhile is not overwritten either.
    await writeFile(join(folder, path), text, { flag: "wx" });
    console.log(`made  ${path}`);
  }
  for (const path of present) console.log(`kept  ${path}`);
  console.log(
    `\nNext:\n${(await nextMoves(folder, present.includes("package.json"))).map((move) => `  ${move}`).join("\n")}`,
  );
}

/** A name that npm takes. */
const packageName = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "") || "agents";

type Manifest = { type?: unknown; dependencies?: object; devDependencies?: object };

async function nextMoves(folder: string, hasManifest: boolean): Promise<string[]> {
  const enter = folder === process.cwd() ? [] : [`cd ${relative(process.cwd(), folder)}`];
  const start = ["npm test", "npm start"];
  if (!hasManifest) return [...enter, "npm install", ...start];
  const { type, dependencies, devDependencies } = JSON.parse(
    await readFile(join(folder, "package.json"), "utf8"),
  ) as Manifest;
  const installed = { ...dependencies, ...devDependencies };
  const scripts = Object.entries(SCRIPTS).map(([name, script]) => `scripts.${name}="${script}"`);
  const missing = Object.keys(DEVELOPMENT).filter((name) => !Object.hasOwn(installed, name));
  return [
    ...enter,
    ...(type === "module"
      ? []
      : ["npm pkg set type=module    # without it Node takes monikers for CommonJS and cannot load them"]),
    `npm pkg set ${scripts.join(" ")}`,
    ...(Object.hasOwn(installed, "everstep") ? [] : ["npm install everstep"]),
    ...(missing.length === 0 ? [] : [`npm install --save-dev ${missing.join(" ")}`]),
    ...start,
  ];
}
