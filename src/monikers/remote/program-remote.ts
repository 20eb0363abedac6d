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

/** Milliseconds after which a process that nothing is asked of is ended. */
const IDLE_MS = 60_000;
/** Milliseconds before a program is started again that ended without an answer, doubled each time up to the longest. */
const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
const LARGEST_DESCRIPTION = 4 * 1024 * 1024;
const VERSION_CHARACTERS = 12;

export type ProgramSettings = {
  env: Record<string, string>;
  /** Processes of one program at most; further steps wait. */
  most_processes: number;
  onError: (file: string, text: string) => void;
};

/**
 * A program that runs steps by its standard input and output, as many processes as steps run at once.
 *
 * POOL-1  A process runs one step at a time. The one that was used last is used next; those that are idle for long are ended.
 * POOL-2  A program that changed is run by new processes only: those of before finish their steps and are ended.
 * POOL-3  A program that ends without an answer is started again after growing waits.
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
        throw remoteMisbehaved(this.name, `answered step ${JSON.stringify(frame.step)} with a frame of another step`);
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
          throw new LinesError(`describes itself in more than ${LARGEST_DESCRIPTION} bytes`);
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

/** What changes with the program, as far as its own file tells. */
async function digestOf(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    return createHash("sha256").update(bytes).digest("hex").slice(0, VERSION_CHARACTERS);
  } catch (error) {
    throw new StepError("remote_gone", `${path} cannot be read; see that it is there`, {
      retryable: true,
      cause: error,
    });
  }
}
