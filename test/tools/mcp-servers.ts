import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import type { McpServerConfig } from "../../src/tools/mcp/mcp-config.ts";
import { McpServer, type ToolLog } from "../../src/tools/mcp/mcp-server.ts";
import { ToolRegistry, type ToolRules } from "../../src/tools/tool-registry.ts";
import { freePort } from "../free-port.ts";
import { REPOSITORY } from "../repository-files.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

export type LogLine = { level: string; message: string } & Record<string, unknown>;
export type StdioConfig = Extract<McpServerConfig, { kind: "stdio" }>;

/** The reference servers from npm. */
export const REFERENCE_SERVERS = {
  everything: fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js")),
  filesystem: fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js")),
  memory: fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js")),
};

export const settings = { concurrency: 8, call_timeout_s: 60, connect_timeout_s: 30 };

/** A server started by this test's own Node. */
export const stdioServer = (name: string, args: string[], more: Partial<StdioConfig> = {}): StdioConfig => ({
  name,
  kind: "stdio",
  command: process.execPath,
  args,
  env: {},
  settings,
  secrets: [],
  ...more,
});

/** A reference server from npm. */
export const reference = (name: keyof typeof REFERENCE_SERVERS, args: string[] = [], more: Partial<StdioConfig> = {}) =>
  stdioServer(name, [REFERENCE_SERVERS[name], ...args], more);

/** One of the misbehaving servers in this folder. */
export const scripted = (name: string, more: Partial<StdioConfig> = {}): StdioConfig =>
  stdioServer(name, [join(REPOSITORY, "test/tools/servers", `${name}.js`)], more);

/** Servers, their registry and their logs, until the end of the test. */
export class Pool implements AsyncDisposable {
  readonly servers: McpServer[];
  readonly registry: ToolRegistry;
  readonly lines: LogLine[] = [];
  readonly workspace: string;
  readonly #remove: () => Promise<void>;
  #listeners: (() => void)[] = [];

  private constructor(workspace: string, remove: () => Promise<void>, configs: McpServerConfig[], rules: ToolRules) {
    this.workspace = workspace;
    this.#remove = remove;
    const at =
      (level: string): ToolLog["info"] =>
      (fields, message) => {
        this.lines.push({ level, message, ...fields });
        for (const listener of this.#listeners) listener();
      };
    const log = { info: at("info"), warn: at("warn"), debug: at("debug") };
    this.servers = configs.map((config) => new McpServer(config, log));
    this.registry = new ToolRegistry({ workspace, servers: this.servers, rules });
  }

  static async open(configs: McpServerConfig[], rules: ToolRules = {}): Promise<Pool> {
    const folder = await scratchFolder();
    return new Pool(folder.path, async () => await folder[Symbol.asyncDispose](), configs, rules);
  }

  /** The first matching line of the log, past or future. */
  async line(fits: (line: LogLine) => boolean, from = 0): Promise<LogLine> {
    for (;;) {
      const line = this.lines.slice(from).find(fits);
      if (line) return line;
      await new Promise<void>((resolve) => this.#listeners.push(resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await this.#remove();
  }
}

/** The reference server over Streamable HTTP, on its own port. */
export class HttpEverything {
  readonly port: number;
  #child: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<HttpEverything> {
    const server = new HttpEverything(await freePort());
    await server.start();
    after(() => server.kill());
    return server;
  }

  get config(): McpServerConfig {
    return { name: "web", kind: "http", url: `http://127.0.0.1:${this.port}/mcp`, headers: {}, settings, secrets: [] };
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [REFERENCE_SERVERS.everything, "streamableHttp"], {
      env: { ...process.env, PORT: String(this.port) },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let said = "";
    child.stderr.on("data", (text: Buffer) => {
      said += text.toString();
      if (said.includes("listening on port")) resolve();
    });
    child.once("exit", () => reject(new Error(`it ended: ${said}`)));
    await promise;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await exited;
  }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
