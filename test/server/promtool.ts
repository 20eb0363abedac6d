import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

const CACHE = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "everstep", "prometheus");
const CACHED = join(CACHE, "usr/bin/promtool");

/** The machine's own, or the one that `install-promtool.ts` fetched. */
function findPromtool(): string | null {
  const { status, stdout } = spawnSync("which", ["promtool"], { encoding: "utf8" });
  if (status === 0) return stdout.trim();
  return existsSync(CACHED) ? CACHED : null;
}

/** Null if there is none: the test is then skipped with a line, or fails with EVERSTEP_TEST_ALL=1. */
export function promtoolFor(t: TestContext): string | null {
  const promtool = findPromtool();
  if (promtool !== null) return promtool;
  const missing = "promtool is missing: node test/server/install-promtool.ts fetches it (Debian, 19 MB)";
  assert.notEqual(process.env["EVERSTEP_TEST_ALL"], "1", missing);
  t.skip(missing);
  return null;
}

/** Its complaints about metrics in Prometheus's format; empty if there are none. */
export async function checkMetrics(promtool: string, metrics: string): Promise<{ status: number; output: string }> {
  const child = spawn(promtool, ["check", "metrics"], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(metrics);
  const closed = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? -1));
  });
  const [status, ...outputs] = await Promise.all([closed, text(child.stdout), text(child.stderr)]);
  return { status, output: outputs.join("") };
}

/** Unpacks Debian's package into the cache: installing it would start a service. */
export async function installPromtool(): Promise<string> {
  const promtool = findPromtool();
  if (promtool !== null) return promtool;
  await mkdir(join(CACHE, ".."), { recursive: true });
  const folder = await mkdtemp(`${CACHE}-`);
  try {
    if (run("apt-get", ["download", "-q", "prometheus"], folder) !== 0) {
      run("apt-get", ["update", "-q"], folder);
      assert.equal(run("apt-get", ["download", "-q", "prometheus"], folder), 0, "apt-get cannot fetch prometheus");
    }
    const archive = (await readdir(folder)).find((name) => name.endsWith(".deb")) ?? "";
    assert.equal(run("dpkg-deb", ["-x", archive, "unpacked"], folder), 0, `${archive} cannot be unpacked`);
    // By a rename, so that it is complete: another run may be doing the same.
    await rename(join(folder, "unpacked"), CACHE).catch((error: unknown) => {
      if (!existsSync(CACHED)) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return CACHED;
}

const run = (command: string, args: string[], cwd: string): number | null =>
  spawnSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] }).status;
