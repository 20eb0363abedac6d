import { readFile } from "node:fs/promises";
import { z } from "zod";
import { EverstepError } from "../../domain/errors.ts";
import type { ToolRules } from "../tool-registry.ts";

const DEFAULT_FILE = "./mcp.json";

const seconds = z.number().positive().max(86_400);
const settingsSchema = z.strictObject({
  /** The most calls to a server at once. Default 8. */
  concurrency: z.int().min(1).max(1000).optional(),
  /** How long a call may take without reporting progress, in seconds. Default 300. */
  call_timeout_s: seconds.optional(),
  /** How long a server may take to start and list its tools, in seconds. Default 60. */
  connect_timeout_s: seconds.optional(),
});
type ServerSettings = { concurrency: number; call_timeout_s: number; connect_timeout_s: number };
const DEFAULT_SETTINGS: ServerSettings = { concurrency: 8, call_timeout_s: 300, connect_timeout_s: 60 };

const globs = z.array(z.string().min(1)).optional();
const everstepSchema = settingsSchema.extend({
  deny: globs,
  ask: globs,
  run: globs,
  read_only: globs,
  idempotent: globs,
  /** Settings of individual servers. */
  servers: z.record(z.string(), settingsSchema).optional(),
});

const texts = z.record(z.string(), z.string());
const stdioSchema = z.object({
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: texts.default({}),
  cwd: z.string().min(1).optional(),
});
const httpSchema = z.object({
  url: z.url({ protocol: /^https?$/, message: "must be an http or https address" }),
  headers: texts.default({}),
});

export type StdioServer = z.infer<typeof stdioSchema>;
export type McpServerConfig = {
  name: string;
  settings: ServerSettings;
  /** Values that must not appear in a log or response. */
  secrets: string[];
} & (({ kind: "stdio" } & StdioServer) | ({ kind: "http" } & z.infer<typeof httpSchema>));
export type McpConfig = { servers: McpServerConfig[]; rules: ToolRules };

export type McpConfigSource = {
  /** The file's path; without one `./mcp.json` is read if it exists. */
  path?: string | undefined;
  environment: NodeJS.ProcessEnv;
  /** Names that are taken. */
  taken: readonly string[];
};

/**
 * Reads the file of MCP servers, in the format that MCP clients share. Fields for other clients are ignored.
 *
 * MCPFILE-1  An error names the place in the file, never its value, which may be a secret.
 */
export async function readMcpConfig({ path, environment, taken }: McpConfigSource): Promise<McpConfig> {
  const file = path ?? DEFAULT_FILE;
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (path === undefined && error.code === "ENOENT") return null;
    throw invalid(file, `it cannot be read (${error.code ?? error.message})`);
  });
  if (text === null) return { servers: [], rules: {} };
  const root = checked(file, [], z.looseObject({}), parse(file, text));
  const entries = checked(
    file,
    ["mcpServers"],
    z.record(z.string(), z.looseObject({})).default({}),
    root["mcpServers"],
  );
  const { servers = {}, ...rules } = checked(file, ["everstep"], everstepSchema.default({}), root["everstep"]);
  for (const name of Object.keys(servers))
    if (!Object.hasOwn(entries, name)) throw invalid(file, `everstep.servers.${name}: no server of that name`);
  return {
    rules,
    servers: Object.entries(entries)
      .filter(([, entry]) => entry["disabled"] !== true)
      .map(([name, entry]) => {
        if (taken.includes(name)) throw invalid(file, `mcpServers.${name}: a built-in server has that name`);
        const settings = { ...DEFAULT_SETTINGS, ...settingsOf(rules), ...settingsOf(servers[name] ?? {}) };
        return readServer({ file, environment }, name, entry, settings);
      }),
  };
}

const settingsOf = (settings: z.infer<typeof settingsSchema>): Partial<ServerSettings> => {
  const { concurrency, call_timeout_s, connect_timeout_s } = settings;
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(call_timeout_s !== undefined && { call_timeout_s }),
    ...(connect_timeout_s !== undefined && { connect_timeout_s }),
  };
};

type Source = { file: string; environment: NodeJS.ProcessEnv };

/** The first part of every tool's name. */
const NAME = /^[^/\p{Cc}]{1,100}$/u;

function readServer(source: Source, name: string, entry: object, settings: ServerSettings): McpServerConfig {
  const { file } = source;
  const place = ["mcpServers", name];
  if (!NAME.test(name))
    throw invalid(
      file,
      `mcpServers: ${JSON.stringify(name.slice(0, 100))} cannot be a server's name: no slash, 1 to 100 characters`,
    );
  const secrets = new Set<string>();
  const expanded = expand(entry, place, source, secrets) as Record<string, unknown>;
  if (expanded["type"] === "sse")
    throw invalid(file, `${place.join(".")}.type: sse is not supported; servers speak Streamable HTTP or stdio`);
  const isHttp = "url" in expanded;
  if (isHttp === "command" in expanded) throw invalid(file, `${place.join(".")}: give either command or url`);
  if (isHttp) {
    const http = checked(file, place, httpSchema, expanded);
    return { name, kind: "http", settings, secrets: secretsOf(secrets, http.headers), ...http };
  }
  const stdio = checked(file, place, stdioSchema, expanded);
  return { name, kind: "stdio", settings, secrets: secretsOf(secrets, stdio.env), ...stdio };
}

/** Shorter values are not secrets, and hiding them would make a log unreadable. */
const SHORTEST_SECRET = 6;
const secretsOf = (expanded: Set<string>, plain: Record<string, string>): string[] =>
  [...new Set([...expanded, ...Object.values(plain)])]
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length);

/** `${NAME}` or `${NAME:-default}`. */
const VARIABLE = /\$\{(\w+)(?::-([^}]*))?\}/g;

function expand(value: unknown, place: string[], source: Source, secrets: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((item, at) => expand(item, [...place, String(at)], source, secrets));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, expand(item, [...place, key], source, secrets)]),
    );
  if (typeof value !== "string") return value;
  return value.replaceAll(VARIABLE, (_, name: string, fallback: string | undefined) => {
    const set = source.environment[name] || fallback;
    if (set === undefined) throw invalid(source.file, `${place.join(".")}: the variable ${name} is not set`);
    secrets.add(set);
    return set;
  });
}

/** MCPFILE-1. */
function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const where = /\(line \d+ column \d+\)/.exec((error as Error).message)?.[0];
    throw invalid(file, `it is not JSON${where === undefined ? "" : ` ${where}`}`);
  }
}

/** MCPFILE-1: zod's messages name types and rules. */
function checked<Value>(file: string, place: string[], schema: z.ZodType<Value>, value: unknown): Value {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = [...place, ...(issue?.path.map(String) ?? [])].join(".");
  throw invalid(file, `${path === "" ? "it" : path}: ${issue?.message}`);
}

const invalid = (file: string, what: string): EverstepError =>
  new EverstepError("mcp_config_invalid", `${file}: ${what}`, "docs/tools.md describes the format");
