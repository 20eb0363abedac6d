import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type RecordedLine, terminalSvg } from "./terminal-svg.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PICTURE = join(ROOT, "docs/pictures/demo.svg");

/** Runs the demo and keeps what it prints, line by line with its time, as the README's picture. */
const parent = await mkdtemp(join(tmpdir(), "everstep-"));
const folder = join(parent, "demo");
const program = spawn(process.execPath, [join(ROOT, "bin/everstep.js"), "demo", "--folder", folder], {
  cwd: parent,
  // Its hints are for those who type what the first line shows.
  env: {
    PATH: process.env["PATH"] ?? "",
    FORCE_COLOR: "1",
    npm_lifecycle_event: "npx",
    npm_lifecycle_script: "everstep",
  },
  stdio: ["ignore", "pipe", "inherit"],
});
const lines: RecordedLine[] = [{ at_s: 0, text: "$ npx everstep demo" }];
const ended = once(program, "exit");
const began = performance.now();
for await (const text of createInterface({ input: program.stdout }))
  lines.push({ at_s: (performance.now() - began) / 1000, text: text.replaceAll(folder, "/tmp/demo") });
const [code] = (await ended) as [number | null];
if (code !== 0) throw new Error(`the demo ended with ${code}`);
await writeFile(PICTURE, terminalSvg(lines, "everstep demo: an agent survives SIGKILL in the middle of a tool call"));
await rm(parent, { recursive: true });
console.log(`${lines.length} lines, ${lines.at(-1)?.at_s.toFixed(1)} s: ${PICTURE}`);
