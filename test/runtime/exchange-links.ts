/**
 * Swaps a file and a link of a workspace with links that lead out of it, and back, as fast as it can, until its parent ends it:
 * `node exchange-links.ts WORKSPACE OUTSIDE`. Each swap is one rename, so that both names always exist.
 */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [root, outside] = process.argv.slice(2) as [string, string];
const inside = (name: string): string => join(root, name);

function link(target: string, name: string): void {
  symlinkSync(target, inside("draft"));
  renameSync(inside("draft"), inside(name));
}

mkdirSync(inside("kept"));
writeFileSync(join(inside("kept"), "file.txt"), "plain words");
for (let turn = 0; ; turn++) {
  writeFileSync(inside("draft"), "plain words");
  renameSync(inside("draft"), inside("file.txt"));
  link("kept", "folder");
  if (turn === 0) process.stdout.write("ready\n");
  link(join(outside, "file.txt"), "file.txt");
  link(outside, "folder");
}
