import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { REPOSITORY } from "../repository-files.ts";

/** The program's environment, without the test runner's variables. */
export type Environment = Record<string, string>;

/** The program run from its sources, where its packages are separate modules. */
export const FROM_SOURCES = { EVERSTEP_TEST_PROGRAM: join(REPOSITORY, "bin/everstep.js") };

/** Run from its sources unless the test runner has built it: the build starts in 0.6 of the time. */
export const PROGRAM = process.env["EVERSTEP_TEST_PROGRAM"] ?? FROM_SOURCES.EVERSTEP_TEST_PROGRAM;

const started = new Set<ChildProcess>();
/** No program outlives the tests that started it, even if they are cut short. */
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** Starts the program with the given command. */
export function spawnEverstep(args: string[], environment: Environment, cwd: string): ChildProcess {
  const { EVERSTEP_TEST_PROGRAM = PROGRAM, ...variables } = environment;
  const child = spawn(process.execPath, [EVERSTEP_TEST_PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: cwd, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}
