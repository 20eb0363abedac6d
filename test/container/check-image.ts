import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { unpackDebianPackages } from "../debian-packages.ts";
import { REPOSITORY } from "../repository-files.ts";
import { assignments, parseDockerfile, type Stage } from "./dockerfile.ts";

/**
 * Runs the Dockerfile's steps without a container engine: in a chroot on a small Debian with this Node and its npm, then starts
 * the program in the resulting tree as its user. Needs root. It cannot check the base image itself.
 */
const BASE = ["base-files", "base-passwd", "bash", "dash", "coreutils", "libstdc++6", "ca-certificates", "grep", "sed"];
const PORT = "41899";
const NODE_USER = 1000;

const work = mkdtempSync(join(tmpdir(), "everstep-image-"));
process.once("exit", () => rmSync(work, { recursive: true, force: true }));

const base = join(work, "base");
await makeBase(base);
const roots = new Map<string, string>();
let last: Built | undefined;
for (const stage of parseDockerfile(readFileSync(join(REPOSITORY, "Dockerfile"), "utf8"))) last = build(stage);
if (!last) throw new Error("the Dockerfile has no stage");
await check(last);

type Built = {
  root: string;
  environment: Record<string, string>;
  directory: string;
  user: number;
  entry: string[];
  command: string[];
};

async function makeBase(root: string): Promise<void> {
  console.log("unpacking a small Debian…");
  mkdirSync(root);
  await unpackDebianPackages("stable", BASE, root);
  for (const folder of ["dev", "tmp", "proc", "usr/local/bin"]) mkdirSync(join(root, folder), { recursive: true });
  cpSync(process.execPath, join(root, "usr/local/bin/node"), { dereference: true });
  const npm = join(realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim()), "../..");
  cpSync(npm, join(root, "usr/local/lib/node_modules/npm"), { recursive: true });
  execFileSync("ln", ["-s", "../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm")]);
  execFileSync("mknod", ["-m", "666", join(root, "dev/null"), "c", "1", "3"]);
  execFileSync("mknod", ["-m", "666", join(root, "dev/urandom"), "c", "1", "9"]);
  writeFileSync(join(root, "etc/passwd"), `root:x:0:0::/tmp:/bin/sh\nnode:x:${NODE_USER}:${NODE_USER}::/tmp:/bin/sh\n`);
  writeFileSync(join(root, "etc/group"), `root:x:0:\nnode:x:${NODE_USER}:\n`);
  for (const file of ["resolv.conf", "hosts", "ssl/certs/ca-certificates.crt"]) {
    mkdirSync(join(root, "etc/ssl/certs"), { recursive: true });
    cpSync(join("/etc", file), join(root, "etc", file), { dereference: true });
  }
}

function build({ name, instructions }: Stage): Built {
  const root = join(work, `stage-${name}`);
  execFileSync("cp", ["-a", base, root]);
  roots.set(name, root);
  const built: Built = { root, environment: {}, directory: "/", user: 0, entry: [], command: [] };
  for (const { keyword, rest } of instructions) {
    console.log(`${name}: ${keyword} ${rest.slice(0, 100)}`);
    if (keyword === "ENV") Object.assign(built.environment, Object.fromEntries(assignments(rest)));
    else if (keyword === "WORKDIR") mkdirSync(join(root, (built.directory = rest)), { recursive: true });
    else if (keyword === "USER") built.user = rest === "node" ? NODE_USER : 0;
    else if (keyword === "ENTRYPOINT") built.entry = JSON.parse(rest) as string[];
    else if (keyword === "CMD") built.command = JSON.parse(rest) as string[];
    else if (keyword === "RUN") execFileSync("unshare", inside(built, ["/bin/sh", "-c", rest]), { stdio: "inherit" });
    else if (keyword === "COPY") copy(built, rest);
  }
  return built;
}

/** The arguments of `unshare`: a container has /proc, mounted here for the duration of the command. */
function inside({ environment, directory, user, root }: Built, command: string[]): string[] {
  const path = "/usr/local/bin:/usr/bin:/bin";
  const variables = Object.entries({
    PATH: path,
    HOME: "/tmp",
    ...forwarded(),
    ...environment,
  });
  const set = variables.map(([name, value]) => `${name}=${value}`);
  const mounted = ["--mount", "/bin/sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$@"', root];
  return [...mounted, `--userspec=${user}:${user}`, root, "/usr/bin/env", "-i", "-C", directory, ...set, ...command];
}

/** The settings for reaching the registry, if the machine has any, and the certificates it trusts. */
function forwarded(): Record<string, string> {
  const names = Object.entries(process.env).filter(([name]) =>
    /^(?:npm_config_registry|https?_proxy|no_proxy)$/i.test(name),
  );
  const settings = Object.fromEntries(names.map(([name, value]) => [name, value ?? ""]));
  return { ...settings, NODE_EXTRA_CA_CERTS: "/etc/ssl/certs/ca-certificates.crt" };
}

function copy({ root, directory }: Built, rest: string): void {
  const from = /^--from=(\S+)\s+/.exec(rest)?.[1];
  const names = rest.replace(/^--from=\S+\s+/, "").split(/\s+/);
  const to = join(root, directory, (names.at(-1) ?? "").replace(join(directory, "/"), "./"));
  const target = names.at(-1)?.startsWith("/") ? join(root, names.at(-1) ?? "") : to;
  for (const name of names.slice(0, -1)) {
    const source = from ? join(roots.get(from) ?? "", name) : join(REPOSITORY, name);
    const ignored = from ? [] : readFileSync(join(REPOSITORY, ".dockerignore"), "utf8").split("\n").filter(Boolean);
    const excluded = ignored.map((pattern) => `--exclude=./${pattern}`);
    const isFolder = statSync(source).isDirectory();
    const tar = isFolder ? ["-C", source, ...excluded, "-cf", "-", "."] : ["-C", join(source, ".."), "-cf", "-", name];
    mkdirSync(target, { recursive: true });
    execFileSync("tar", ["-C", target, "-xf", "-"], { input: execFileSync("tar", tar, { maxBuffer: 4e9 }) });
  }
}

/** Starts what the image starts, as its user, and checks its health. */
async function check(built: Built): Promise<void> {
  const { entry, command, user } = built;
  if (user === 0) throw new Error("the program runs as root");
  built.environment["EVERSTEP_PORT"] = PORT;
  const child: ChildProcess = spawn("unshare", inside(built, [...entry, ...command]), { stdio: "inherit" });
  const exited = once(child, "exit");
  const until = Date.now() + 30_000;
  const isUp = () =>
    fetch(`http://127.0.0.1:${PORT}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
  while (!(await isUp())) {
    if (child.exitCode !== null || Date.now() > until) throw new Error("the program did not come up");
    await wait(100);
  }
  const owner = statSync(`/proc/${child.pid}`).uid;
  child.kill("SIGTERM");
  const [code] = (await exited) as [number | null];
  const health = spawn("unshare", inside(built, [...entry, "matrix", "--health"]), { stdio: "inherit" });
  const [unhealthy] = (await once(health, "exit")) as [number | null];
  const size = execFileSync("du", ["-sm", join(built.root, "usr/local/lib/node_modules/everstep")], {
    encoding: "utf8",
  }).split("\t")[0];
  console.log(
    `it answered as user ${owner}, ended with ${code}; the health check of a bot that does not run ended with ${unhealthy}; the package has ${size} MB`,
  );
  if (owner !== NODE_USER || code !== 0 || unhealthy !== 1) process.exitCode = 1;
}
