import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { HangUp } from "./hang-up.ts";

const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 30_000;
/** A process that ran this long before it crashed is not in a crash loop: the backoff starts anew. */
const STABLE_MS = 60_000;

/** What a supervised process tells its supervisor once it serves. */
export const UP = "up";

/**
 * Runs the command as a process of its own and starts it again when it crashes.
 *
 * SUPERVISE-1  A process that ends by itself with 0, or because it was asked to stop, is not started again.
 * SUPERVISE-2  One that never came up is not started again either: what is wrong with its settings is to be told once.
 * SUPERVISE-3  Crashes in a row are slowed: the wait doubles up to half a minute.
 * SUPERVISE-4  The two share a channel, whose end tells the process that its supervisor is gone, however that died.
 * SUPERVISE-5  SIGHUP is passed on, since it asks for a reload, unless the terminal is gone or the command knows no reload.
 *
 * Resolves with the exit code.
 */
export async function supervise(args: readonly string[], tell: (line: string) => void): Promise<number> {
  const stopping = new AbortController();
  let child: ChildProcess | undefined;
  const hangUp = new HangUp();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      // SUPERVISE-5: where the terminal is gone, so is the log, and the child ends at once.
      const isReload = signal === "SIGHUP" && args[0] !== "matrix" && !hangUp.isReal();
      if (!isReload) stopping.abort();
      // A terminal sends SIGINT to both, and a second one of the same kind would end the process without order.
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
    tell(`everstep ended with ${signal ?? code}; it starts again in ${backoff_ms / 1000} s`);
    await wait(backoff_ms, undefined, { signal: stopping.signal }).catch(() => {});
    if (stopping.signal.aborted) return 1;
  }
}

/** The same program with the same command, but not supervised in turn. */
function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] as string, ...args], {
    env: { ...process.env, EVERSTEP_SUPERVISE: "" },
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
}
