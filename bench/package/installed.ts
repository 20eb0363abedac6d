import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../../test/free-port.ts";
import { install, pack } from "../../test/package/npm.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";

const STARTS = 5;
const MEGABYTE = 1024 * 1024;
const LOOK_EVERY_MS = 5;

export async function measureInstalled({ folder, quick }: BenchContext): Promise<Figure[]> {
  const { size, tarball } = await pack(folder);
  const project = join(folder, "project");
  await install(project, [tarball]);
  const installed = await bytesIn(join(project, "node_modules"));
  // The first start compiles; later ones use the cache.
  const first = await startOnce(project, join(folder, "first"));
  const later: number[] = [];
  for (let index = 0; index < (quick ? 2 : STARTS); index++)
    later.push(await startOnce(project, join(folder, `start-${index}`)));
  const name = "the installed `everstep serve` with an empty store to the first good answer of /health";
  return [
    { figure: "the tarball", measured: size / MEGABYTE, unit: "MB", bar: atMost(4) },
    { figure: "installed, with its dependencies", measured: installed / MEGABYTE, unit: "MB", bar: atMost(300) },
    { figure: `${name}: at the very first start`, measured: first / 1_000, unit: "s", bar: atMost(1.5) },
    {
      figure: `${name}: median of ${later.length} later ones`,
      measured: summarize(later).p50 / 1_000,
      unit: "s",
      bar: atMost(1.5),
    },
  ];
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = names
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function startOnce(project: string, data: string): Promise<number> {
  const port = await freePort();
  const begun = performance.now();
  const child = spawn(process.execPath, [join(project, "node_modules/everstep/bin/everstep.js"), "serve"], {
    cwd: project,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: project,
      EVERSTEP_PORT: String(port),
      EVERSTEP_STORE: `lancedb:${data}`,
    },
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error("the installed program did not come up");
    await wait(LOOK_EVERY_MS);
  }
  const took = performance.now() - begun;
  child.kill("SIGTERM");
  await exited;
  return took;
}
