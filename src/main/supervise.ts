import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { HangUp } from "./hang-up.ts";

const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 30_000;
/** A process that ran this long before it crashed is not in a crash loop: the backoff starts over. */
const STABLE_MS = 60_000;

/** Sent by a supervised process once it serves. */
export const UP = "up";

/**
 * Runs the command as a child process and restarts it after a crash.
 *
 * SUPERVISE-1  A process that exits with 0 or was asked to stop is not restarted.
 * SUPERVISE-2  Nor is one that never came up: a configuration error should be reported once.
 * SUPERVISE-3  Crashes in a row are slowed down: the backoff doubles up to half a minute.
 * SUPERVISE-4  Both share a channel; when it closes, the process knows that its supervisor is gone, however it died.
 * SUPERVISE-5  SIGHUP is forwarded, since it requests a reload, unless the terminal is gone or the command has no reload.
 *
 * Resolves with the exit code.
 */
export async function supervise(args: readonly string[], print: (line: string) => void): Promise<number> {
  const stopping = new AbortController();
  let child: ChildProcess | undefined;
  const hangUp = new HangUp();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      // SUPERVISE-5: without the terminal there is no log, and the child ends at once.
      const isReload = signal === "SIGHUP" && args[0] !== "matrix" && !hangUp.isReal();
      if (!isReload) stopping.abort();
      // A terminal sends SIGINT to both, and a second one of the same kind would abort the process.
      child?.kill(signal === "SIGHUP" && (isReload || hangUp.isReal()) ? "SIGHUP" : "SIGTERM");
    });
  let wasUp = false;
  for (let crashes = 0; ; ) {
    const started = performance.now();
    child = start(args);
    child.on("message", (message) => {
      wasUp ||= message === UP;
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    if (code === 0 || stopping.signal.aborted || !wasUp) return code ?? 1;
    crashes = performance.now() - started > STABLE_MS ? 1 : crashes + 1;
    const backoff_ms = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (crashes - 1));
    print(`everstep ended with ${signal ?? code}; restarting in ${backoff_ms / 1000} s`);
    await wait(backoff_ms, undefined, { signal: stopping.signal }).catch(() => {});
    if (stopping.signal.aborted) return 1;
  }
}

/** The same program with the same command, but unsupervised. */
function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] as string, ...args], {
    env: { ...process.env, EVERSTEP_SUPERVISE: "" },
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
}
