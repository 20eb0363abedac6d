import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { REPOSITORY } from "../repository-files.ts";

const hasPython = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0;

/** For a suite: skipped with one line if there is no Python, unless EVERSTEP_TEST_ALL=1. */
export const NEEDS_PYTHON = {
  skip:
    !hasPython && process.env["EVERSTEP_TEST_ALL"] !== "1" && "python3 3.9 or newer is missing: apt install python3",
};

export const PYTHON_CLIENT = join(REPOSITORY, "clients/python");

const started = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** A Python worker over HTTP that can be killed and restarted on the same port. */
export class PythonWorker implements AsyncDisposable {
  readonly #file: string;
  readonly #environment: Record<string, string>;
  #child: ChildProcess | undefined;
  #port = 0;
  stderr = "";

  private constructor(file: string, environment: Record<string, string>) {
    this.#file = file;
    this.#environment = environment;
  }

  static async start(file: string, environment: Record<string, string> = {}): Promise<PythonWorker> {
    const worker = new PythonWorker(file, environment);
    await worker.start();
    return worker;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const child = spawn("python3", [this.#file], {
      env: {
        PATH: process.env["PATH"],
        PYTHONPATH: PYTHON_CLIENT,
        PYTHONDONTWRITEBYTECODE: "1",
        EVERSTEP_REMOTE_PORT: String(this.#port),
        ...this.#environment,
      },
      stdio: ["ignore", "inherit", "pipe"],
    });
    started.add(child);
    child.once("exit", () => started.delete(child));
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.once("exit", () => reject(new Error(`the worker ended: ${this.stderr}`)));
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        this.stderr = (this.stderr + text).slice(-10_000);
        const port = /at http:\/\/[^:]+:(\d+)/.exec(this.stderr)?.[1];
        if (port === undefined) return;
        this.#port = Number(port);
        resolve();
      });
    });
    this.stderr = "";
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
