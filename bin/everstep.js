#!/usr/bin/env node
// The program runs on Node 24: in a clone as TypeScript, installed as the JavaScript that was built from it. Where an older Node
// started this file in a clone, the one that came with `npm ci` takes over.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";

const LAUNCHER = "EVERSTEP_LAUNCHER_PID";
const placeOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const isClone = existsSync(placeOf("../src/main/everstep.ts"));

if (Number(process.versions.node.split(".")[0]) >= 24) {
  stopWithLauncher();
  // What was compiled once is not compiled again at the next start, which takes half the time. Where the folder cannot be written
  // there is no such gain, and no harm. Threads and a supervised program take it from the environment.
  process.env.NODE_COMPILE_CACHE ??= placeOf(isClone ? "../node_modules/.cache/everstep" : "../../.cache/everstep");
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  await import(isClone ? "../src/main/everstep.ts" : "../dist/everstep.js");
} else {
  const node = placeOf("../node_modules/.bin/node");
  if (!isClone || !existsSync(node)) {
    const next = isClone
      ? "run `npm ci` in its folder, which brings one along, or install Node 24"
      : "install it from nodejs.org";
    console.error(`everstep needs Node 24 or newer, and this is ${process.versions.node}: ${next}`);
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // The channel carries nothing; that it breaks tells the child that this process is gone.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [LAUNCHER]: String(process.pid) },
  });
  // A terminal sends Ctrl-C to both; what is sent to this process alone is passed on.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}

/** A launcher that was killed took nothing along and would leave a program behind that nobody sees and that holds the data folder. */
function stopWithLauncher() {
  const isLaunched = process.env[LAUNCHER] === String(process.ppid) && process.channel !== undefined;
  delete process.env[LAUNCHER];
  if (!isLaunched) return;
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  process.channel?.unref();
}
