import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** How the process ends after it has responded: by itself, or killed. */
export type Ending = "by itself" | "killed";

/** Runs a file of this folder in a separate process and resolves with the message it sends. */
export async function runInFreshProcess<Answer>(
  file: string,
  args: readonly string[],
  ending: Ending,
): Promise<Answer> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args);
  const exit = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const first = await Promise.race([
    once(child, "message").then(([message]) => ({ message: message as Answer })),
    exit.then(([code, signal]) => ({ failure: `${file} ended with ${signal ?? code} and without an answer` })),
  ]);
  if ("failure" in first) throw new Error(first.failure);
  if (ending === "killed") child.kill("SIGKILL");
  const [code] = await exit;
  if (ending === "by itself" && code !== 0) throw new Error(`${file} ended with ${code}`);
  return first.message;
}

/** The child's side. */
export function answer(message: Record<string, number>): void {
  if (!process.send) throw new Error("this file is started by the bench, not by hand");
  process.send(message);
}
