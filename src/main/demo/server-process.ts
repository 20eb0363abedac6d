import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { CommandError } from "../../surfaces/cli/client.ts";
import { UP } from "../supervise.ts";

/** Variables of the user's environment and .env that must not affect the demo. */
const OWN = /^(?:EVERSTEP_|MATRIX_|OTEL_|OPENAI_|ANTHROPIC_|GOOGLE_|OPENROUTER_|OLLAMA_|AZURE_)/;

type Options = { folder: string; environment: Readonly<Record<string, string>> };

/** `everstep serve` as a child process in a folder, to be killed and restarted at the same address. */
export class ServerProcess implements AsyncDisposable {
  readonly url: string;
  readonly #port: number;
  readonly #options: Options;
  #child: ChildProcess | null = null;
  #log = "";

  private constructor(port: number, options: Options) {
    this.#port = port;
    this.#options = options;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(options: Options): Promise<ServerProcess> {
    const server = new ServerProcess(await freePort(), options);
    await server.start();
    return server;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [process.argv[1] as string, "serve"], {
      cwd: this.#options.folder,
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN.test(name))),
        EVERSTEP_PORT: String(this.#port),
        EVERSTEP_LOG_LEVEL: "warn",
        // The server ends when this process does, however that ends.
        EVERSTEP_LAUNCHER_PID: String(process.pid),
        ...this.#options.environment,
      },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    const isUp = Promise.withResolvers<void>();
    child.on("message", (message) => {
      if (message === UP) isUp.resolve();
    });
    child.once("exit", () => isUp.reject(new CommandError(`the demo's server ended:\n${this.#log}`)));
    await isUp.promise;
  }

  /** SIGKILL: the process cannot react. Resolves when it is gone, with the signal that ended it. */
  async kill(): Promise<string | null> {
    const child = this.#child;
    if (child === null || child.exitCode !== null) throw new CommandError("the demo's server has already ended");
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    const [, signal] = (await exit) as [number | null, string | null];
    return signal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    await exit;
  }
}

/** The same at each start, so that clients find it again. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
