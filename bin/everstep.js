#!/usr/bin/env node
// The program runs as TypeScript on Node 24. Where an older Node started this file, the one that came with `npm ci` takes over.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";

if (Number(process.versions.node.split(".")[0]) >= 24) {
  // What was compiled once is not compiled again at the next start, which takes half the time. Where the folder cannot be written
  // there is no such gain, and no harm.
  module.enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/everstep", import.meta.url)));
  await import("../src/main/everstep.ts");
} else {
  const node = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
  if (!existsSync(node)) {
    console.error("everstep needs Node 24: run `npm ci` in its folder, which brings one along, or install Node 24");
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  // A terminal sends Ctrl-C to both; what is sent to this process alone is passed on.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
