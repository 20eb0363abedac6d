import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../free-port.ts";

export type PoolMode = "session" | "transaction" | "statement";

/** True if it is installed. Otherwise the test is skipped with a line, or fails with EVERSTEP_TEST_ALL=1. */
export function hasPgbouncer(t: TestContext): boolean {
  if (spawnSync("which", ["pgbouncer"]).status === 0) return true;
  const missing = "pgbouncer is missing: install the package pgbouncer";
  assert.notEqual(process.env["EVERSTEP_TEST_ALL"], "1", missing);
  t.skip(missing);
  return false;
}

/** A separate PgBouncer in front of the database at a URL, and its own URL. */
export async function startPgbouncer(
  url: string,
  settings: { pool_mode: PoolMode; pool_size: number; ignore: string[] },
): Promise<AsyncDisposable & { url: string }> {
  const target = new URL(url);
  const folder = await mkdtemp(join(tmpdir(), "everstep-pgbouncer-"));
  await chmod(folder, 0o755);
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  await writeFile(
    file,
    `[databases]
* = host=${target.hostname} port=${target.port} user=${target.username} password=${decodeURIComponent(target.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${settings.pool_mode}
default_pool_size = ${settings.pool_size}
ignore_startup_parameters = ${settings.ignore.join(",")}
`,
  );
  // It refuses to run as root.
  const user = userInfo().uid === 0 ? ["-u", "nobody"] : [];
  const child = spawn("pgbouncer", [...user, file], { stdio: "ignore" });
  const exited = once(child, "exit");
  while (!(await answers(port))) {
    assert.equal(child.exitCode, null, "pgbouncer ended");
    await wait(20);
  }
  target.port = String(port);
  return {
    url: target.href,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
