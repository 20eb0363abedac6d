import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type StoreHome, storeHome } from "../store-home.ts";
import { within } from "../within.ts";
import { type Environment, spawnEverstep } from "./spawn-everstep.ts";

/** A test that takes longer than this, in milliseconds, is stuck. */
export const TIMEOUT = { timeout: 180_000 };
const START_MS = 60_000;

export type Ending = { code: number | null; signal: NodeJS.Signals | null; ms: number };
type Running = { child: ChildProcess; exited: Promise<[number | null, NodeJS.Signals | null]> };

/** The real program, `everstep serve`, on its own folder. A restart uses the same address. */
export class ServerProcess implements AsyncDisposable {
  readonly folder: string;
  readonly #home: StoreHome;
  readonly #environment: Environment;
  readonly #args: string[];
  #running: Running | undefined;
  #stdout = "";
  #stderr = "";
  #url = "";

  private constructor(home: StoreHome, environment: Environment, args: string[]) {
    this.#home = home;
    this.#args = args;
    this.folder = home.folder;
    this.#environment = environment;
  }

  static async start(environment: Environment = {}, args: string[] = []): Promise<ServerProcess> {
    const server = new ServerProcess(await storeHome(), environment, args);
    try {
      await server.start();
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  get url(): string {
    return this.#url;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get pid(): number {
    return this.#running?.child.pid ?? assert.fail("the server does not run");
  }

  get isAlive(): boolean {
    return this.#running?.child.exitCode === null && this.#running.child.signalCode === null;
  }

  /** Log lines that report an internal error. */
  get loggedErrors(): string[] {
    return this.#stderr.split("\n").filter((line) => /"level":[56]0/.test(line) || /^\s+at /.test(line));
  }

  /** Resolves when it has printed its address and responds there. */
  async start(): Promise<void> {
    const port = this.#url === "" ? "0" : new URL(this.#url).port;
    const environment = {
      EVERSTEP_STORE: this.#home.store,
      EVERSTEP_WORKSPACE: join(this.folder, "workspace"),
      EVERSTEP_PORT: port,
      ...this.#environment,
    };
    const child = spawnEverstep(["serve", ...this.#args], environment, this.folder);
    this.#running = { child, exited: once(child, "exit") as Running["exited"] };
    const greeting = Promise.withResolvers<string>();
    let said = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      said += text;
      const address = /Everstep is up at (\S+) /.exec(said)?.[1];
      if (address) greeting.resolve(address);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    void this.#running.exited.then(() => greeting.reject(new Error(`the server ended: ${this.#stderr}`)));
    this.#url = await within(START_MS, greeting.promise, () => `the server did not start: ${this.#stderr}`);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Asks it to stop, as an operator would. */
  async stop(signal: "SIGTERM" | "SIGINT" = "SIGTERM"): Promise<Ending> {
    return this.#end(signal);
  }

  /** Ends it after the tests: it must still be running, and must not have logged an internal error. */
  async finish(): Promise<void> {
    const { isAlive, loggedErrors } = this;
    await this[Symbol.asyncDispose]();
    assert.ok(isAlive, `the server died: ${this.#stderr}`);
    assert.deepEqual(loggedErrors, [], "the server logged errors");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#home[Symbol.asyncDispose]();
  }

  /** Waits until it ends by itself. */
  async ended(): Promise<Omit<Ending, "ms">> {
    assert.ok(this.#running, "the server does not run");
    const [code, signal] = await within(
      START_MS,
      this.#running.exited,
      () => `the server did not end: ${this.#stderr}`,
    );
    this.#running = undefined;
    return { code, signal };
  }

  async #end(signal: NodeJS.Signals): Promise<Ending> {
    if (!this.#running) return { code: null, signal: null, ms: 0 };
    const { child, exited } = this.#running;
    const asked = performance.now();
    child.kill(signal);
    const [code, by] = await exited;
    this.#running = undefined;
    return { code, signal: by, ms: performance.now() - asked };
  }
}

/** One server for the tests of a file. */
export function sharedServer(environment: Environment = {}): () => ServerProcess {
  let server: ServerProcess | undefined;
  before(async () => {
    server = await ServerProcess.start(environment);
  });
  after(async () => server?.finish());
  return () => server ?? assert.fail("the server is started before the tests run");
}

/** Polls at increasing intervals until there is a value. For conditions that no event reports. */
export async function eventually<Value>(what: string, ask: () => Promise<Value | undefined | false>): Promise<Value> {
  const until = performance.now() + START_MS;
  for (let pause_ms = 10; ; pause_ms = Math.min(100, pause_ms * 1.2)) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    assert.ok(performance.now() < until, `did not happen: ${what}`);
    await wait(pause_ms);
  }
}
