import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { fileURLToPath } from "node:url";

/** Runs a file of this folder in a separate process, which ends with its scope. */
export class Child<Message> implements AsyncDisposable {
  readonly #file: string;
  readonly #process: ChildProcess;
  readonly #messages: AsyncIterator<[Message]>;
  readonly #exit: Promise<unknown>;

  constructor(file: string, args: readonly string[], execArgv: readonly string[] = []) {
    this.#file = file;
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: [...execArgv] });
    this.#exit = once(this.#process, "exit");
    this.#messages = on(this.#process, "message", { close: ["disconnect"] }) as AsyncIterator<[Message]>;
  }

  /** The next message from it. */
  async next(): Promise<Message> {
    const { value, done } = (await this.#messages.next()) as IteratorResult<[Message], undefined>;
    if (done) throw new Error(`${this.#file} ended early, with ${await this.#ending()}`);
    return value[0];
  }

  /** Asks it to exit, which it must do without an error. */
  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.send("stop");
    const ending = await this.#ending();
    if (ending !== 0) throw new Error(`${this.#file} ended with ${ending}`);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
  }

  async #ending(): Promise<number | NodeJS.Signals | null> {
    await this.#exit;
    return this.#process.signalCode ?? this.#process.exitCode;
  }
}

/** The child's side: sends a message to the bench. */
export function say(message: object): void {
  if (!process.send) throw new Error("this file is started by the bench, not by hand");
  process.send(message);
}

/** Resolves when the bench asks the process to stop. Exits at once if the bench is gone. */
export async function askedToStop(): Promise<void> {
  process.once("disconnect", () => process.exit(1));
  await once(process, "message");
  process.removeAllListeners("disconnect");
  process.disconnect();
}

/** Milliseconds of a clock that all processes of the machine share. */
export const sharedClock = (): number => performance.timeOrigin + performance.now();
