import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { spawnEverstep } from "../server/spawn-everstep.ts";
import { within } from "../within.ts";

export type Role = "worker" | "server" | "serve";

const START_MS = 60_000;

/** A real `everstep worker`, `everstep server`, or `everstep serve`, which is both. */
export class Member {
  readonly #child: ChildProcess;
  readonly #exited: Promise<[number | null, NodeJS.Signals | null]>;
  readonly #greeted = Promise.withResolvers<string>();
  #said = "";

  constructor(role: Role, environment: Record<string, string>, cwd: string) {
    this.#child = spawnEverstep([role], environment, cwd);
    this.#exited = once(this.#child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#said += text;
        const greeting = /Everstep (?:is running|is up at (\S+))/.exec(this.#said);
        if (greeting) this.#greeted.resolve(greeting[1] ?? "");
      });
    this.#greeted.promise.catch(() => {}); // Callers of `ready` see the error.
    void this.#exited.then(() => this.#greeted.reject(new Error(`it ended: ${this.#said}`)));
  }

  /** Resolves with its address when it is up. */
  ready(): Promise<string> {
    return within(START_MS, this.#greeted.promise, () => `it did not start: ${this.#said}`);
  }

  get pid(): number {
    return this.#child.pid ?? assert.fail("it does not run");
  }

  /** All its output. */
  get said(): string {
    return this.#said;
  }

  /** Its exit code and signal. */
  get exited(): Promise<[number | null, NodeJS.Signals | null]> {
    return this.#exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Asks it to stop, which it must do without an error. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    assert.deepEqual(await this.#exited, [0, null], this.#said);
  }
}
