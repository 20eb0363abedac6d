import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Semaphore } from "../../concurrency/semaphore.ts";
import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { type StepContext, StepError } from "../moniker.ts";
import { BoundedLines, type Buffered, LinesError } from "./bounded-lines.ts";
import { type Descriptions, readDescriptions } from "./description.ts";
import { commandOf, monikerNameOf } from "./program-files.ts";
import { type Consumer, ProgramProcess } from "./program-process.ts";
import { type Remote, stepRequest } from "./remote.ts";
import { remoteMisbehaved } from "./remote-errors.ts";
import { StepAnswer } from "./step-answer.ts";

/** An idle process is ended after this many milliseconds. */
const IDLE_MS = 60_000;
/** Delay before a program that ended without an answer is restarted, doubled each time up to the longest, in milliseconds. */
const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
const LARGEST_DESCRIPTION = 4 * 1024 * 1024;
const VERSION_CHARACTERS = 12;

export type ProgramSettings = {
  env: Record<string, string>;
  /** The most processes of one program; further steps wait. */
  most_processes: number;
  onError: (file: string, text: string) => void;
};

/**
 * A program that runs steps over standard input and output, with one process per concurrent step.
 *
 * POOL-1  A process runs one step at a time. The most recently used idle process is reused; long idle ones are ended.
 * POOL-2  A changed program is run by new processes only; the old ones finish their steps and end.
 * POOL-3  A program that ends without an answer is restarted with backoff.
 */
export class ProgramRemote implements Remote {
  readonly name: string;
  readonly #settings: ProgramSettings;
  readonly #slots: Semaphore;
  readonly #buffered: Buffered = { bytes: 0 };
  readonly #processes = new Set<ProgramProcess>();
  readonly #timers = new Map<ProgramProcess, NodeJS.Timeout>();
  #idle: ProgramProcess[] = [];
  #generation = "";
  #generations = new WeakMap<ProgramProcess, string>();
  #failures = 0;
  #notBefore = 0;

  constructor(path: string, settings: ProgramSettings) {
    this.name = path;
    this.#settings = settings;
    this.#slots = new Semaphore(settings.most_processes);
  }

  async describe(signal: AbortSignal): Promise<Descriptions> {
    const version = await digestOf(this.name);
    const process = await this.#start(signal);
    const text = await this.#answerOf(process, (consumer) => process.ask('{"describe":true}', consumer, signal));
    const defaults = { name: monikerNameOf(this.name), version };
    const descriptions = readDescriptions(this.name, text, defaults);
    this.#generation = createHash("sha256").update(`${version} ${text}`).digest("hex");
    this.#generations.set(process, this.#generation);
    for (const other of this.#idle.splice(0)) this.#release(other); // POOL-2
    this.#release(process);
    return descriptions;
  }

  async run(moniker: string, frame: FrameIn, context: StepContext): Promise<FrameOut> {
    const { signal, emit } = context;
    return this.#slots.run(async () => {
      signal.throwIfAborted();
      const process = this.#idle.pop() ?? (await this.#start(signal)); // POOL-1
      clearTimeout(this.#timers.get(process));
      const answer = new StepAnswer(this.name, emit, this.#buffered);
      const consume: Consumer = (chunk) => {
        answer.push(chunk);
        return answer.isWhole;
      };
      try {
        await process.ask(stepRequest(moniker, frame, context), consume, signal);
        const result = answer.finish();
        if (result.step === frame.step) return result;
        process.kill();
        throw remoteMisbehaved(this.name, `answered step ${JSON.stringify(frame.step)} with a frame for another step`);
      } finally {
        answer.drop();
        this.#release(process);
      }
    });
  }

  async stop(): Promise<void> {
    const processes = [...this.#processes];
    this.#idle = [];
    this.#generation = "stopped";
    await Promise.all(processes.map((process) => process.stop()));
  }

  async #answerOf(process: ProgramProcess, ask: (consumer: Consumer) => Promise<void>): Promise<string> {
    const lines = new BoundedLines({ bytes: 0 });
    let bytes = 0;
    let answer: string | undefined;
    try {
      await ask((chunk) => {
        bytes += chunk.length;
        if (bytes > LARGEST_DESCRIPTION)
          throw new LinesError(`described itself in more than ${LARGEST_DESCRIPTION} bytes`);
        for (const line of lines.push(chunk)) answer ??= line;
        return answer !== undefined;
      });
      return answer ?? "";
    } catch (error) {
      process.kill();
      throw error instanceof LinesError ? remoteMisbehaved(this.name, error.message, { cause: error }) : error;
    }
  }

  /** POOL-3. */
  async #start(signal: AbortSignal): Promise<ProgramProcess> {
    const ms = this.#notBefore - performance.now();
    if (ms > 0) await wait(ms, undefined, { signal });
    const { env, onError } = this.#settings;
    const command = await commandOf(this.name);
    const process = new ProgramProcess(this.name, {
      command,
      cwd: dirname(this.name),
      env,
      onError: (text) => onError(this.name, text),
    });
    this.#generations.set(process, this.#generation);
    this.#processes.add(process);
    void process.exited.then(() => this.#ended(process));
    return process;
  }

  #ended(process: ProgramProcess): void {
    this.#processes.delete(process);
    this.#idle = this.#idle.filter((other) => other !== process);
    clearTimeout(this.#timers.get(process));
    this.#timers.delete(process);
    if (process.hasAnswered) return;
    this.#failures++;
    this.#notBefore = performance.now() + Math.min(LONGEST_RESTART_MS, FIRST_RESTART_MS * 2 ** (this.#failures - 1));
  }

  #release(process: ProgramProcess): void {
    if (process.hasAnswered) this.#failures = 0;
    if (process.hasEnded || !this.#processes.has(process)) return;
    if (this.#generations.get(process) !== this.#generation) return void process.stop().catch(() => {}); // POOL-2
    this.#idle.push(process);
    const timer = setTimeout(() => {
      this.#idle = this.#idle.filter((other) => other !== process);
      void process.stop().catch(() => {});
    }, IDLE_MS);
    this.#timers.set(process, timer.unref());
  }
}

/** A version derived from the program's own file. */
async function digestOf(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    return createHash("sha256").update(bytes).digest("hex").slice(0, VERSION_CHARACTERS);
  } catch (error) {
    throw new StepError("remote_gone", `${path} cannot be read; check that it exists`, {
      retryable: true,
      cause: error,
    });
  }
}
