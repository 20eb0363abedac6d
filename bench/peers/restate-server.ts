import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { arch, platform } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../test/free-port.ts";
import { sizeOfFolder } from "./folder-size.ts";

const STARTS_WITHIN_MS = 30_000;
const STOPS_WITHIN_MS = 5_000;

/** The packaged server with its defaults; only ports and folder are set (docs.restate.dev/server/networking). */
export class RestateServer implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly ingress: string;
  readonly admin: string;

  private constructor(server: ChildProcess, folder: string, ingress: string, admin: string) {
    this.#process = server;
    this.#folder = folder;
    this.ingress = ingress;
    this.admin = admin;
  }

  static async start(folder: string): Promise<RestateServer> {
    await mkdir(folder, { recursive: true });
    const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
    const binary = `node_modules/@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`;
    const env = {
      ...process.env,
      RESTATE_BASE_DIR: folder,
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    };
    const child = spawn(fileURLToPath(new URL(binary, import.meta.url)), [], { env, stdio: "ignore" });
    const failed = once(child, "error").then(([error]) => Promise.reject(error as Error));
    failed.catch(() => {});
    const server = new RestateServer(child, folder, `http://127.0.0.1:${ingress}`, `http://127.0.0.1:${admin}`);
    try {
      await Promise.race([server.#untilHealthy(), failed]);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  bytes(): Promise<number> {
    return sizeOfFolder(this.#folder);
  }

  async #untilHealthy(): Promise<void> {
    const end = performance.now() + STARTS_WITHIN_MS;
    const isOk = (url: string): Promise<boolean> =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!((await isOk(`${this.admin}/health`)) && (await isOk(`${this.ingress}/restate/health`)))) {
      if (performance.now() > end) throw new Error("the Restate server did not become healthy");
      await wait(50);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.pid === undefined || this.#process.exitCode !== null) return;
    const exit = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    const limit = setTimeout(() => this.#process.kill("SIGKILL"), STOPS_WITHIN_MS);
    await exit;
    clearTimeout(limit);
  }
}
