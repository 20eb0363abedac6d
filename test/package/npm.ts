import { execFile } from "node:child_process";
import { cp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "../repository-files.ts";

const run = promisify(execFile);
const QUIET = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
/** Files that a clone does not have. */
const NOT_IN_A_CLONE =
  /^(?:node_modules|\.git|dist|data|workspace|bench\/results|torture\/results|test\/console\/artifacts)(?:\/|$)/;

/** The environment of a shell whose `node` is the given one. */
export function shellWith(node: string): Record<string, string> {
  // The variables that npm sets for scripts must not reach the npm started here.
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_(?!config_(?:registry|cache))|NODE_(?!EXTRA_CA_CERTS)|INIT_CWD)/.test(name),
  );
  const path = [
    dirname(node),
    ...(process.env["PATH"] ?? "").split(delimiter).filter((one) => !one.includes("node_modules")),
  ];
  return { ...(Object.fromEntries(kept) as Record<string, string>), PATH: path.join(delimiter) };
}

export async function npm(args: readonly string[], cwd: string, node = process.execPath): Promise<string> {
  const { stdout } = await run("npm", args, { cwd, env: shellWith(node), maxBuffer: 1e8 });
  return stdout;
}

export type Packed = { tarball: string; size: number; files: string[] };

/** Packs a copy of the repository, since other tests are reading the files that a build replaces. */
export async function pack(folder: string): Promise<Packed> {
  const clone = join(folder, "clone");
  await cp(REPOSITORY, clone, {
    recursive: true,
    preserveTimestamps: true,
    filter: (source) => !NOT_IN_A_CLONE.test(relative(REPOSITORY, source)),
  });
  await symlink(join(REPOSITORY, "node_modules"), join(clone, "node_modules"), "dir");
  const text = await npm(["pack", "--json", "--loglevel=error", "--pack-destination", folder], clone);
  // Scripts that ran earlier have already printed something.
  const answer = JSON.parse(text.slice(text.search(/^[[{]/m))) as Record<string, PackAnswer>;
  const [packed] = Object.values(answer) as [PackAnswer];
  await rm(clone, { recursive: true });
  return { tarball: join(folder, packed.filename), size: packed.size, files: packed.files.map(({ path }) => path) };
}

type PackAnswer = { filename: string; size: number; files: { path: string }[] };

/** Creates an empty project and installs packages into it. */
export async function install(folder: string, packages: readonly string[], node = process.execPath): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  await npm(["install", ...QUIET, ...packages], folder, node);
}

/** Node of a major version, from npm's package `node`. */
export async function nodeFromNpm(major: number, folder: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  await install(folder, [`${name}@${major}`]);
  return join(folder, "node_modules", name, "bin/node");
}

const UNREACHABLE = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH/;

/** Why packages cannot be installed; null if they can. */
export async function missingRegistry(): Promise<string | null> {
  try {
    await npm(["view", "zod", "version", "--fetch-retries=0"], REPOSITORY);
    return null;
  } catch (error) {
    if (!UNREACHABLE.test(String(error))) throw error;
    return "the npm registry cannot be reached, from which the package's dependencies come";
  }
}
