import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { REPOSITORY } from "./repository-files.ts";

/** A test file and its environment. */
export type FileRun = { file: string; environment?: Record<string, string> };
type Limits = {
  /** How many files run concurrently. */
  concurrency: number;
  /** The time limit of a test in milliseconds. */
  test_ms: number;
  /** The time limit of a file in milliseconds: one whose event loop never becomes idle is ended, and has failed. */
  file_ms: number;
};
type Ended = { title: string; text: string; passed: boolean; seconds: number };
type Counts = Map<string, number>;
type Durations = Record<string, number>;

const COUNTED = ["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"];
const FOOTER = /^ℹ (\w+) ([\d.]+)\n/gm;
const FAILURES = "✖ failing tests:";
const SLOWEST = 8;
/** Files create and drop many rows in a short life: a young generation that starts at its full size is collected less often. */
const FLAGS = ["--min-semi-space-size=16", "--test-reporter=spec"];
const OUTPUT_MS = 5000;
/** How long each file took last time, in seconds. */
const DURATIONS = join(REPOSITORY, "node_modules/.cache/test-durations.json");

const running = new Set<ChildProcess>();
/** Ending this process also ends the files and everything they started. */
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => {
    for (const child of running) endGroup(child);
    process.exit(1);
  });

/**
 * Runs each file in its own process, the slowest of the last run first; prints its output when it ends, and finally what
 * failed.
 */
export async function runFiles(runs: readonly FileRun[], limits: Limits): Promise<boolean> {
  const start = performance.now();
  const durations = readDurations();
  const waiting = longestFirst(runs, durations);
  const ended: Ended[] = [];
  const counts: Counts = new Map();
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const one = await runFile(next, limits);
      ended.push(one);
      report(one, counts);
    }
  };
  await Promise.all(Array.from({ length: limits.concurrency }, work));
  for (const { title, seconds } of ended) durations[title] = seconds;
  writeFileSync(DURATIONS, JSON.stringify(durations));
  summarize(ended, counts, (performance.now() - start) / 1000);
  return ended.length > 0 && ended.every(({ passed }) => passed);
}

function titleOf({ file, environment = {} }: FileRun): string {
  const where = environment["EVERSTEP_TEST_STORE"];
  return where === undefined ? file : `${file} (${where})`;
}

/** The slowest first, so that it does not run alone at the end. Files without a recorded time stay in order before all others. */
function longestFirst(runs: readonly FileRun[], durations: Durations): FileRun[] {
  const secondsOf = (run: FileRun): number => durations[titleOf(run)] ?? Number.MAX_VALUE;
  return runs.toSorted((a, b) => secondsOf(b) - secondsOf(a));
}

function readDurations(): Durations {
  try {
    return JSON.parse(readFileSync(DURATIONS, "utf8")) as Durations;
  } catch {
    return {};
  }
}

async function runFile({ file, environment = {} }: FileRun, { test_ms, file_ms }: Limits): Promise<Ended> {
  const start = performance.now();
  const child = spawn(process.execPath, [...FLAGS, `--test-timeout=${test_ms}`, file], {
    cwd: REPOSITORY,
    stdio: ["ignore", "pipe", "pipe"],
    // A separate process group, so that it can be ended with the servers and browsers that it started.
    detached: true,
    env: {
      NODE_COMPILE_CACHE: `${REPOSITORY}/node_modules/.cache/test`,
      ...process.env,
      // Also for the processes that a file starts and kills.
      NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --require="${REPOSITORY}test/built-threads.cjs"`,
      ...environment,
    },
  });
  running.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
  let isEndless = false;
  const timer = setTimeout(() => {
    isEndless = true;
    endGroup(child);
  }, file_ms);
  const closed = once(child, "close");
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  clearTimeout(timer);
  running.delete(child);
  endGroup(child);
  // A process left behind in another group may keep the output open forever.
  await Promise.race([closed, wait(OUTPUT_MS, undefined, { ref: false })]);
  if (isEndless) text += `\n${FAILURES}\n\n✖ ${file} was ended: it still ran after ${file_ms / 1000} s\n`;
  else if (signal !== null) text += `\n${FAILURES}\n\n✖ ${file} was ended by ${signal}\n`;
  return {
    title: titleOf({ file, environment }),
    text,
    // A file that ended without reporting its failures has not passed either, nor has one with a hook that failed, which is not counted.
    passed: code === 0 && /^ℹ fail 0$/m.test(text) && !text.includes(FAILURES),
    seconds: (performance.now() - start) / 1000,
  };
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function report({ title, text, passed, seconds }: Ended, counts: Counts): void {
  for (const [, name, value] of text.matchAll(FOOTER))
    if (COUNTED.includes(name as string)) counts.set(name as string, (counts.get(name as string) ?? 0) + Number(value));
  console.log(`${passed ? "" : "✖ "}${title} (${seconds.toFixed(1)} s)\n${text.replace(FOOTER, "").trim()}\n`);
}

function summarize(ended: Ended[], counts: Counts, seconds: number): void {
  const failed = ended.filter(({ passed }) => !passed);
  for (const { title, text } of failed) {
    const at = text.indexOf(FAILURES);
    console.log(`✖ ${title}\n${at < 0 ? text : text.slice(at + FAILURES.length)}`);
  }
  const slowest = ended.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  console.log(`slowest: ${slowest.map((one) => `${one.title} ${one.seconds.toFixed(0)} s`).join(", ")}`);
  console.log(`${ended.length} files, ${failed.length} failed, ${seconds.toFixed(0)} s`);
  // In the format of Node's own runner, which other tools can parse.
  for (const name of COUNTED) console.log(`ℹ ${name} ${counts.get(name) ?? 0}`);
}
