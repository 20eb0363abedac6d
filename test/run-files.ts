import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { REPOSITORY } from "./repository-files.ts";

/** A test file, and what it is run with. */
export type FileRun = { file: string; environment?: Record<string, string> };
type Limits = {
  /** Files that run side by side. */
  concurrency: number;
  /** Milliseconds of a test. */
  test_ms: number;
  /** Milliseconds of a file: one whose event loop never comes to rest is ended, and has failed. */
  file_ms: number;
};
type Ended = { title: string; text: string; passed: boolean; seconds: number };
type Counts = Map<string, number>;

const COUNTED = ["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"];
const FOOTER = /^ℹ (\w+) ([\d.]+)\n/gm;
const FAILURES = "✖ failing tests:";
const SLOWEST = 8;
const OUTPUT_MS = 5000;

const running = new Set<ChildProcess>();
/** Whoever ends this process ends the files as well, with all that they started. */
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => {
    for (const child of running) endGroup(child);
    process.exit(1);
  });

/** Runs each file in a process of its own, tells what it said once it ended, and at the end what failed. */
export async function runFiles(runs: readonly FileRun[], limits: Limits): Promise<boolean> {
  const start = performance.now();
  const waiting = [...runs];
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
  summarize(ended, counts, (performance.now() - start) / 1000);
  return ended.length > 0 && ended.every(({ passed }) => passed);
}

async function runFile({ file, environment = {} }: FileRun, { test_ms, file_ms }: Limits): Promise<Ended> {
  const start = performance.now();
  const child = spawn(process.execPath, ["--test-reporter=spec", `--test-timeout=${test_ms}`, file], {
    cwd: REPOSITORY,
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that it can be ended with the servers and browsers that it started.
    detached: true,
    env: { NODE_COMPILE_CACHE: `${REPOSITORY}/node_modules/.cache/test`, ...process.env, ...environment },
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
  // What a file left behind in another group may hold its output open for ever.
  await Promise.race([closed, wait(OUTPUT_MS, undefined, { ref: false })]);
  if (isEndless) text += `\n${FAILURES}\n\n✖ ${file} was ended: it still ran after ${file_ms / 1000} s\n`;
  else if (signal !== null) text += `\n${FAILURES}\n\n✖ ${file} was ended by ${signal}\n`;
  const where = environment["EVERSTEP_TEST_STORE"];
  return {
    title: where === undefined ? file : `${file} (${where})`,
    text,
    // A file that ended without telling how many failed has not passed either.
    passed: code === 0 && /^ℹ fail 0$/m.test(text),
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
  // In the words of Node's own runner, which tools that read the output know.
  for (const name of COUNTED) console.log(`ℹ ${name} ${counts.get(name) ?? 0}`);
}
