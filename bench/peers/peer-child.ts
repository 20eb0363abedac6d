import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { on, once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Order, PeerStart, Reply } from "./protocol.ts";

const STEPS = fileURLToPath(new URL("peer-process.ts", import.meta.url));
const AGENTS = fileURLToPath(new URL("agent/agent-process.ts", import.meta.url));
const STALLED_AFTER_MS = 120_000;

/** A peer's process as the bench sees it, with the server that it may have started. They end with its scope. */
export class PeerChild implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #replies: AsyncIterator<[Reply]>;
  readonly #exit: Promise<unknown>;
  #said = "";

  private constructor(start: PeerStart) {
    // Their output is shown only if they fail.
    const options = { stdio: ["ignore", "pipe", "pipe", "ipc"], detached: true } satisfies ForkOptions;
    this.#process = fork(start.work ? AGENTS : STEPS, [JSON.stringify(start)], options);
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

  /** Lets it finish its writes, then kills it: some libraries fail in a process that exits normally. */
  async close(): Promise<void> {
    await this.order({ kind: "close" }, "closed");
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#killAll();
    await this.#exit;
  }

  /** Kills the whole process group: a server that it started must not outlive it. */
  #killAll(): void {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
  }

  async #reply<Kind extends Reply["kind"]>(kind: Kind): Promise<Extract<Reply, { kind: Kind }>> {
    const stalled = setTimeout(() => this.#killAll(), STALLED_AFTER_MS);
    const { value, done } = (await this.#replies.next()) as IteratorResult<[Reply], undefined>;
    clearTimeout(stalled);
    if (done) throw new Error(`it ended without a reply: ${reasonOf(this.#said)}`);
    const [reply] = value;
    if (reply.kind === "failed") throw new Error(reply.message);
    if (reply.kind !== kind) throw new Error(`it replied ${reply.kind} in place of ${kind}`);
    return reply as Extract<Reply, { kind: Kind }>;
  }
}

/** The line with the error and what follows it, without the stack. */
function reasonOf(said: string): string {
  const from = said.search(/^\w*Error\b/m);
  const lines = (from < 0 ? said : said.slice(from)).split("\n").filter((line) => !/^\s+at /.test(line));
  return lines.slice(0, 4).join(" ").trim() || "it said nothing";
}
