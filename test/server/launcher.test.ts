import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { REPOSITORY } from "../repository-files.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { TIMEOUT } from "./server-fixture.ts";

/** Makes this Node appear old, so that the launcher switches to the one installed with the packages. */
const OLD_NODE = `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } })`;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const signal of ["SIGKILL", "SIGTERM"] as const)
  test(`a launcher that ends by ${signal} leaves no program behind`, TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const launcher = spawn(process.execPath, ["--import", OLD_NODE, join(REPOSITORY, "bin/everstep.js"), "serve"], {
      cwd: scratch.path,
      env: { PATH: process.env["PATH"] ?? "", HOME: scratch.path, EVERSTEP_PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(launcher.stdout, "data");
    const program = Number(await readFile(join(scratch.path, "data/owner.pid"), "utf8"));
    assert.notEqual(program, launcher.pid, "the launcher itself runs the program, so nothing was launched");
    assert.ok(isAlive(program));
    launcher.kill(signal);
    await once(launcher, "exit");
    while (isAlive(program)) await setTimeout(20);
  });
