import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { remoteGone } from "./remote-errors.ts";

/** How long a process may take to end before it is killed, in milliseconds. */
const END_MS = 2000;
/** Characters of the process's standard error that an error quotes. */
const LONGEST_TAIL = 500;

/** Receives the bytes of an answer; returns true once it is complete. Throws if they are wrong. */
export type Consumer = (chunk: Buffer) => boolean;

export type ProgramOptions = {
  command: readonly [string, ...string[]];
  cwd: string;
  env: Record<string, string>;
  /** Receives what the process writes to standard error. */
  onError: (text: string) => void;
};

/** `idle` → `busy` with one request → `idle` …, and from either to `ended`, which is final. */
type State =
  | { kind: "idle" }
  | { kind: "busy"; consume: Consumer; resolve: () => void; reject: (error: Error) => void }
  | { kind: "ended"; why: string };

/**
 * One process of a program that gets a request as a line on standard input and answers with lines on standard output.
 *
 * PROGRAM-1  It gets one request at a time, so its output belongs to that request. Output without a request ends it.
 * PROGRAM-2  A process whose answer was wrong or abandoned is ended: its next output would belong to no request.
 * PROGRAM-3  Its child processes are in its process group and are ended with it.
 */
export class ProgramProcess {
  readonly #name: string;
  readonly #child: ChildProcess & { stdin: Writable; stdout: Readable; stderr: Readable };
  readonly exited: Promise<unknown>;
  readonly #onError: (text: string) => void;
  #state: State = { kind: "idle" };
  #tail = "";
  /** Whether it has ever answered. */
  hasAnswered = false;

  constructor(name: string, { command: [file, ...args], cwd, env, onError }: ProgramOptions) {
    this.#name = name;
    this.#onError = onError;
    // PROGRAM-3. Its own group also keeps a terminal's Ctrl-C away from it: running steps may finish.
    this.#child = spawn(file, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    const ended = Promise.withResolvers<void>();
    this.exited = ended.promise;
    this.#child.once("error", (error) => {
      this.#end(`cannot be started (${error.message})`);
      ended.resolve();
    });
    this.#child.once("exit", (code, signal) => {
      ended.resolve();
      this.#killGroup();
      // Its last output may still be in the pipe.
      void outputRead(this.#child).then(() =>
        this.#end(`ended (${signal ?? `exit code ${code}`})${this.#lastOutput()}`),
      );
    });
    this.#child.stdin.on("error", () => {});
    this.#child.stdout.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#child.stderr.on("data", (chunk: Buffer) => {
      const text = chunk.toString();
      this.#tail = (this.#tail + text).slice(-LONGEST_TAIL);
      onError(text);
    });
  }

  get isIdle(): boolean {
    return this.#state.kind === "idle";
  }

  get hasEnded(): boolean {
    return this.#state.kind === "ended";
  }

  /** Sends a line; resolves when the consumer has the complete answer. */
  async ask(line: string, consume: Consumer, signal: AbortSignal): Promise<void> {
    if (this.#state.kind === "ended") throw remoteGone(this.#name, this.#state.why);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#state = { kind: "busy", consume, resolve, reject };
    const abort = () => this.#fail(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    this.#child.stdin.write(`${line}\n`);
    try {
      await promise;
      this.hasAnswered = true;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Asks it to end, then kills it. */
  async stop(): Promise<void> {
    this.#child.stdin.end();
    const timer = setTimeout(() => this.kill(), END_MS);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.#end("was killed");
    // The pid may be reused after it has exited.
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#killGroup();
  }

  #take(chunk: Buffer): void {
    const state = this.#state;
    if (state.kind === "ended") return;
    if (state.kind === "idle") return this.#rejectOutput(chunk);
    try {
      if (!state.consume(chunk)) return;
      this.#state = { kind: "idle" };
      state.resolve();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  /** PROGRAM-1. */
  #rejectOutput(chunk: Buffer): void {
    const text = chunk.toString("latin1").trim();
    if (text === "") return;
    this.#onError(`wrote to standard output without a request and was ended: ${text.slice(0, LONGEST_TAIL)}\n`);
    this.kill();
  }

  /** PROGRAM-2. */
  #fail(error: Error): void {
    if (this.#state.kind === "busy") this.#state.reject(error);
    this.#state = { kind: "idle" };
    this.kill();
  }

  #end(why: string): void {
    const state = this.#state;
    if (state.kind === "ended") return;
    this.#state = { kind: "ended", why };
    if (state.kind === "busy") state.reject(remoteGone(this.#name, why));
  }

  #lastOutput(): string {
    const text = this.#tail.trim();
    return text === "" ? "" : `, after writing ${JSON.stringify(text)}`;
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group is empty.
    }
  }
}

/** Bounded: a child of the process may keep the pipe open. */
async function outputRead({ stdout }: { stdout: Readable }): Promise<void> {
  if (stdout.readableEnded || stdout.destroyed) return;
  await once(stdout, "close", { signal: AbortSignal.timeout(500) }).catch(() => {});
}
