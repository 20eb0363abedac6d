import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Contender } from "../contenders.ts";

const APPS = {
  eve: "node_modules/eve/bin/eve.js",
  workflow: "node_modules/nitro/dist/cli/index.mjs",
};

/** Contenders whose agents must be compiled are built as their documentation says. */
export async function buildApps(contenders: readonly Contender[]): Promise<void> {
  for (const [app, program] of Object.entries(APPS)) {
    if (!contenders.some(({ agents }) => agents?.endsWith(`/${app}.ts`))) continue;
    const build = spawn(process.execPath, [here(`../${program}`), "build"], {
      cwd: here(`../libraries/apps/${app}`),
      env: { ...process.env, EVE_TELEMETRY_DISABLED: "1", CI: "1" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const [said, [code]] = await Promise.all([text(build.stderr), once(build, "exit")]);
    // It is then reported as a contender that could not run.
    if (code !== 0) process.stderr.write(`  ${app} could not be built: ${said.slice(-500)}\n`);
  }
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
