import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Order, PeerStart, Reply } from "./protocol.ts";

const PROGRAM = fileURLToPath(new URL("peer-process.ts", import.meta.url));
const STALLED_AFTER_MS = 120_000;

/** A peer's process, seen from the bench. It ends with its scope. */
export class PeerChild implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #replies: AsyncIterator<[Reply]>;
  readonly #exit: Promise<unknown>;
  #said = "";

  private constructor(start: PeerStart) {
    // Each prints what it likes, which is only of interest when it fails.
    this.#process = fork(PROGRAM, [JSON.stringify(start)], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on("data", (text) => (this.#said = (this.#said + String(text)).slice(-2_000)));
    this.#exit = once(this.#process, "exit");
    this.#replies = on(this.#process, "message", { close: ["disconnect"] }) as AsyncIterator<[Reply]>;
  }

  /** Resolves when the peer is open. */
  static async open(start: PeerStart): Promise<PeerChild> {
    const child = new PeerChild(start);
    try {
      await child.#reply("ready");
      return child;
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  async order<Kind extends Reply["kind"]>(order: Order, kind: Kind): Promise<Extract<Reply, { kind: Kind }>> {
    this.#process.send(order);
    return this.#reply(kind);
  }

  /** Lets it write what it has to, then ends it: some libraries fail in a process that ends by itself. */
  async close(): Promise<void> {
    await this.order({ kind: "close" }, "closed");
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
  }

  async #reply<Kind extends Reply["kind"]>(kind: Kind): Promise<Extract<Reply, { kind: Kind }>> {
    const stalled = setTimeout(() => this.#process.kill("SIGKILL"), STALLED_AFTER_MS);
    const { value, done } = (await this.#replies.next()) as IteratorResult<[Reply], undefined>;
    clearTimeout(stalled);
    if (done) throw new Error(`it ended without a reply: ${reasonOf(this.#said)}`);
    const [reply] = value;
    if (reply.kind === "failed") throw new Error(reply.message);
    if (reply.kind !== kind) throw new Error(`it replied ${reply.kind} in place of ${kind}`);
    return reply as Extract<Reply, { kind: Kind }>;
  }
}

/** The line that names the error and what follows it, without where in the code that was. */
function reasonOf(said: string): string {
  const from = said.search(/^\w*Error\b/m);
  const lines = (from < 0 ? said : said.slice(from)).split("\n").filter((line) => !/^\s+at /.test(line));
  return lines.slice(0, 4).join(" ").trim() || "it said nothing";
}
