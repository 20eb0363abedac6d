import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { EverstepError } from "../domain/errors.ts";
import { DEVELOPMENT, projectFiles, SCRIPTS } from "./init-files.ts";

const SETTINGS = new URL("../../.env.example", import.meta.url);
/** Files that a project may already have; they are left unchanged. */
const MAY_EXIST = ["package.json", ".gitignore"];

/** Creates a project in a folder and prints the next steps. */
export async function init(named: string): Promise<void> {
  const folder = resolve(named);
  const files = { ...projectFiles(packageName(folder)), ".env.example": await readFile(SETTINGS, "utf8") };
  const present = Object.keys(files).filter((path) => existsSync(join(folder, path)));
  const conflicts = present.filter((path) => !MAY_EXIST.includes(path));
  if (conflicts.length > 0)
    throw new EverstepError(
      "project_exists",
      `${folder} already has ${conflicts.join(", ")}; nothing was written`,
      "choose another folder: everstep init FOLDER",
    );
  for (const [path, text] of Object.entries(files)) {
    if (present.includes(path)) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    // `wx`: a file created meanwhile is not overwritten either.
    await writeFile(join(folder, path), text, { flag: "wx" });
    console.log(`created  ${path}`);
  }
  for (const path of present) console.log(`kept     ${path}`);
  console.log(
    `\nNext:\n${(await nextMoves(folder, present.includes("package.json"))).map((move) => `  ${move}`).join("\n")}`,
  );
}

/** A valid npm package name. */
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
