import { createHash } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { bundle } from "../build/bundle.ts";
import { type Entry, exportedEntries, PROGRAM } from "../build/entries.ts";
import { versionOfFolder } from "../src/monikers/own-files.ts";
import { REPOSITORY } from "./repository-files.ts";

const BUILDS = join(REPOSITORY, "node_modules/.cache/test-program");
const SOURCES = ["src/**/*", "build/**/*", "bin/*", "package.json", "package-lock.json"];
/** The threads of stores, which tests open by the hundred. */
const THREADS: Entry[] = [
  { name: "thread-entry", source: "store/embedded/thread-entry.ts" },
  { name: "heartbeat-thread", source: "store/postgres/heartbeat-thread.ts" },
];
/** What the package contains besides its code, copied from the repository. */
const BESIDE = ["package.json", ".env.example", "clients", "console"];

const DAY_MS = 86_400_000;

/** What the test runner builds: the program, and a folder with the threads of stores. */
type Built = { program: string; threads: string };

/** Builds the program as for the package, and the threads, unless they were built from the same sources before. */
export async function builtProgram(): Promise<Built> {
  const build = join(BUILDS, await versionOfSources());
  const built = { program: join(build, "everstep/bin/everstep.js"), threads: join(build, "threads") };
  if (existsSync(build)) return built;
  await removeOldBuilds();
  const temporary = await mkdtemp(join(BUILDS, "new-"));
  await buildInto(temporary);
  // If another run was faster, its build is the same.
  await rename(temporary, build).catch(() => rm(temporary, { recursive: true }));
  return built;
}

/** Newer ones may be in use. */
async function removeOldBuilds(): Promise<void> {
  await mkdir(BUILDS, { recursive: true });
  for (const name of await readdir(BUILDS)) {
    const path = join(BUILDS, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true });
  }
}

async function versionOfSources(): Promise<string> {
  const hash = createHash("sha256");
  const files = globSync(SOURCES, { cwd: REPOSITORY, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of files.map(({ parentPath, name }) => join(parentPath, name)).sort())
    hash.update(`${path}\n`).update(await readFile(path));
  return hash.digest("hex").slice(0, 16);
}

async function buildInto(build: string): Promise<void> {
  const folder = join(build, "everstep");
  const monikers_version = await versionOfFolder(join(REPOSITORY, "src/monikers"));
  await bundle({ folder: join(build, "threads"), entries: THREADS, monikers_version, has_zod: true });
  await bundle({ folder: join(folder, "dist"), entries: [PROGRAM, ...exportedEntries()], monikers_version });
  for (const name of BESIDE) await symlink(join(REPOSITORY, name), join(folder, name));
  const launcher = join(folder, "bin/everstep.js");
  await mkdir(dirname(launcher));
  await copyFile(join(REPOSITORY, "bin/everstep.js"), launcher);
}
