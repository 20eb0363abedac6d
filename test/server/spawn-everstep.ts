import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { REPOSITORY } from "../repository-files.ts";

/** Variables of the program, those of the test runner left out. */
export type Environment = Record<string, string>;

const started = new Set<ChildProcess>();
/** No program outlives the tests that started it, also where they are cut short. */
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** Starts the program with a command of its own. */
export function spawnEverstep(args: string[], environment: Environment, cwd: string): ChildProcess {
  const child = spawn(process.execPath, [join(REPOSITORY, "bin/everstep.js"), ...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: cwd, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}
