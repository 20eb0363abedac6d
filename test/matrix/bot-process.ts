import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Environment, spawnEverstep } from "../server/spawn-everstep.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { within } from "../within.ts";

const START_MS = 60_000;

/** The real program, `everstep matrix`, with its own state folder that outlives it. */
export class BotProcess implements AsyncDisposable {
  readonly #scratch: ScratchFolder;
  readonly #environment: Environment;
  #child: ChildProcess | undefined;
  #stderr = "";

  private constructor(scratch: ScratchFolder, environment: Environment) {
    this.#scratch = scratch;
    this.#environment = environment;
  }

  static async start(environment: Environment): Promise<BotProcess> {
    const bot = new BotProcess(await scratchFolder(), environment);
    try {
      await bot.start();
    } catch (error) {
      await bot[Symbol.asyncDispose]();
      throw error;
    }
    return bot;
  }

  get user_id(): string {
    return this.#environment["MATRIX_USER_ID"] ?? assert.fail("the bot has no user");
  }

  get state(): string {
    return join(this.#scratch.path, "matrix-state");
  }

  get stderr(): string {
    return this.#stderr;
  }

  get child(): ChildProcess {
    return this.#child ?? assert.fail("the bot does not run");
  }

  get pid(): number {
    return this.child.pid ?? assert.fail("the bot does not run");
  }

  get isAlive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it follows its homeserver; `changes` are settings for this start only. */
  async start(changes: Environment = {}): Promise<void> {
    const child = this.spawn(changes);
    const greeting = Promise.withResolvers<void>();
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes("is up at")) greeting.resolve();
    });
    child.once("exit", () => greeting.reject(new Error(`the bot ended: ${this.#stderr}`)));
    await within(START_MS, greeting.promise, () => `the bot did not start: ${this.#stderr}`);
  }

  /** The exit code of the container's health check. */
  async health(): Promise<number | null> {
    const child = spawnEverstep(["matrix", "--health"], { MATRIX_STATE: this.state }, this.#scratch.path);
    const [code] = (await once(child, "exit")) as [number | null];
    return code;
  }

  /** Starts it without waiting for anything. */
  spawn(changes: Environment = {}): ChildProcess {
    const child = spawnEverstep(
      ["matrix"],
      { EVERSTEP_LOG_LEVEL: "warn", ...this.#environment, ...changes, MATRIX_STATE: this.state },
      this.#scratch.path,
    );
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.#child = child;
    return child;
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** Ends it after the tests: it must still be running, and must not have logged an internal error. */
  async finish(): Promise<void> {
    const { isAlive } = this;
    await this[Symbol.asyncDispose]();
    assert.ok(isAlive, `the bot died: ${this.#stderr}`);
    const errors = this.#stderr.split("\n").filter((line) => /"level":[56]0/.test(line) || /^\s+at /.test(line));
    assert.deepEqual(errors, [], "the bot logged errors");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#scratch[Symbol.asyncDispose]();
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, "exit");
    child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }
}
