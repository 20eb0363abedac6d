import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import {
  deserializeMessage,
  type JSONRPCMessage,
  SdkError,
  SdkErrorCode,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";
import { LineReader } from "./line-reader.ts";
import type { StdioServer } from "./mcp-config.ts";
import { MessageLines } from "./message-lines.ts";

/** The largest message in bytes. */
const LARGEST_MESSAGE = 16 * 1024 * 1024;
/** How long a process may take after its input is closed, and after SIGTERM, in milliseconds. */
const GRACE_MS = 2000;
/** How long to wait for the last output of a process that ended, in milliseconds: another process may keep the pipe open. */
const LAST_OUTPUT_MS = 200;
/** Variables a process inherits beyond its configuration and the library's harmless defaults. */
const INHERITED = ["TMPDIR", "LANG", "LC_ALL", "TZ"];

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * An MCP server run as a child process, over standard input and output.
 *
 * The library's own transport has three problems: it starts every server twice to negotiate the revision, takes quadratic time
 * for a long message, and leaves the process in our process group, where Ctrl-C ends it before its last calls.
 *
 * STDIO-1  The process is ended by closing its input, then by SIGTERM, then by SIGKILL, with its child processes. If this
 *          process is killed, closing the input is all that happens.
 * STDIO-2  It inherits only the environment it needs to run and what its configuration names.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #server: StdioServer;
  readonly #lines = new MessageLines(LARGEST_MESSAGE);
  readonly #log: LineReader;
  #child: Child | undefined;
  #ended: Promise<void> = Promise.resolve();
  /** How the process ended; null while it runs. */
  ending: string | null = null;

  constructor(server: StdioServer, onLog: (line: string) => void) {
    this.#server = server;
    this.#log = new LineReader(onLog);
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** The library takes a transport with this property for a process. */
  get stderr(): Readable | null {
    return this.#child?.stderr ?? null;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#server;
    const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
    const child: Child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...Object.fromEntries(inherited), ...env }, // STDIO-2
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true,
      ...(cwd !== undefined && { cwd }),
    });
    this.#ended = this.#watch(child);
    child.stderr.on("data", (chunk: Buffer) => this.#log.read(chunk));
    child.stdout.on("data", (chunk: Buffer) => this.#receive(chunk));
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream.on("error", (error) => this.onerror?.(error));
    await once(child, "spawn");
    this.#child = child;
  }

  /** Resolves when the process has ended and the transport is closed. */
  async #watch(child: Child): Promise<void> {
    const ended = Promise.withResolvers<string>();
    child.once("error", (error) => ended.resolve(error.message));
    child.once("exit", (code, signal) => ended.resolve(signal ?? `exit code ${code}`));
    const ending = await ended.promise;
    await atMost(LAST_OUTPUT_MS, child.stdout.readableEnded ? undefined : once(child.stdout, "end"));
    this.ending = `it ended (${ending})`;
    this.#child = undefined;
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    this.onclose?.();
  }

  #receive(chunk: Buffer): void {
    try {
      for (const line of this.#lines.read(chunk)) if (line !== "") this.#deliver(line);
    } catch (error) {
      this.onerror?.(error as Error);
      void this.close();
    }
  }

  /** Reports and skips a line that is not a message. */
  #deliver(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      this.onerror?.(new Error(`it wrote a line that is not a message: ${line.slice(0, 200)}`));
      return;
    }
    this.onmessage?.(message);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    if (!child?.stdin.writable) throw new SdkError(SdkErrorCode.NotConnected, this.ending ?? "it is not running");
    if (child.stdin.write(serializeMessage(message))) return;
    await Promise.race([once(child.stdin, "drain").catch(() => {}), this.#ended]);
  }

  /** STDIO-1. */
  async close(): Promise<void> {
    const child = this.#child;
    if (!child) return this.#ended;
    child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await atMost(GRACE_MS, this.#ended);
      if (this.#child !== child) return;
      kill(child, signal);
    }
    await this.#ended;
  }
}

/** The process and its children: it has its own process group. */
function kill(child: Child, signal: NodeJS.Signals): void {
  try {
    if (child.pid === undefined || process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It has just ended.
  }
}

async function atMost(ms: number, promise: Promise<unknown> | undefined): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, ms);
  await Promise.race([promise?.catch(() => {}), limit.promise]);
  clearTimeout(timer);
}
