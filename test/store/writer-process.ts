import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Tuning } from "../../src/store/embedded/embedded-store.ts";
import { type Acknowledged, acknowledge } from "./verify-history.ts";

/** The file descriptor for a writer's reports. */
export const REPORTS = 3;

export type Upkeep = "checkpoint" | "compact";
export type WriterOrder = {
  folder: string;
  lanes: number;
  pace_ms: number;
  tuning: Partial<Tuning>;
  /** What the writer does repeatedly besides the commits. */
  constantly: Upkeep[];
};
export type WriterReport =
  | { kind: "opened" }
  | { kind: "acknowledged"; session_id: string; key: string; name: string }
  | { kind: "started" | "finished"; work: Upkeep };

export type ReportingProcess<Report> = {
  pid: number;
  /** Resolves with the matching report; throws if the process ends before, or if none matches for a minute. */
  reported(fits: (report: Report) => boolean): Promise<void>;
  /** Resolves when every thread is stopped. All reports are known once `kill` has resolved. */
  freeze(): Promise<void>;
  /** Resolves when it has ended and all its reports were read. Throws if it had ended by itself. */
  kill(): Promise<void>;
  /** Asks it to stop and resolves when it has ended without an error. */
  finish(): Promise<void>;
};

export type Writer = ReportingProcess<WriterReport>;

/** Starts the writer; acknowledged commits are added to `acknowledged`. */
export function startWriter(order: WriterOrder, acknowledged: Acknowledged): Writer {
  return startReporting<WriterReport>("./crash-writer.ts", JSON.stringify(order), (report) => {
    if (report.kind === "acknowledged") acknowledge(acknowledged, report);
  });
}

export function startReporting<Report>(
  program: string,
  argument: string,
  read: (report: Report) => void,
): ReportingProcess<Report> {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [path, argument], { stdio: ["ignore", "ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const waiting = new Set<{ fits: (report: Report) => boolean; resolve: () => void }>();
  let last = "nothing";
  let begun = "";
  // An incomplete line was never reported: the process was killed in the middle of it.
  (child.stdio[REPORTS] as Readable).setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (begun + chunk).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) {
      last = line;
      const report = JSON.parse(line) as Report;
      read(report);
      for (const waiter of waiting) {
        if (!waiter.fits(report)) continue;
        waiting.delete(waiter);
        waiter.resolve();
      }
    }
  });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const ended = closed.then(([code, signal]) => ({
    code,
    signal,
    how: `${program} ended with ${signal ?? code}: ${errors}`,
  }));
  const endedBefore = async (): Promise<never> => {
    throw new Error((await ended).how);
  };
  const tooLate = async (): Promise<never> => {
    await pause(60_000, undefined, { ref: false });
    throw new Error(`${program} reported nothing that fits for a minute, and ${last} last: ${errors}`);
  };
  const pid = child.pid as number;
  return {
    pid,
    reported: async (fits) => {
      const report = new Promise<void>((resolve) => waiting.add({ fits, resolve }));
      await Promise.race([report, endedBefore(), tooLate()]);
    },
    freeze: async () => {
      child.kill("SIGSTOP");
      while (!(await standsStill(pid))) await pause(1);
    },
    kill: async () => {
      child.kill("SIGKILL");
      const { signal, how } = await ended;
      assert.equal(signal, "SIGKILL", how);
    },
    finish: async () => {
      child.kill("SIGTERM");
      const { code, how } = await ended;
      assert.equal(code, 0, how);
    },
  };
}

async function standsStill(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(
    threads.map(async (thread) => await readFile(`/proc/${pid}/task/${thread}/stat`, "utf8").catch(() => ") T")),
  );
  return states.every((stat) => stat.slice(stat.lastIndexOf(")") + 2).startsWith("T"));
}
