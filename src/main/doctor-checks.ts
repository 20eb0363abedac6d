import { accessSync, constants, existsSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, resolve } from "node:path";
import { EverstepError } from "../domain/errors.ts";
import { BUILT_IN, MonikerLoader } from "../monikers/catalog.ts";
import { readModel } from "../monikers/llm/model.ts";
import { describeStore, isShared } from "../store/open-store.ts";
import { readMcpConfig } from "../tools/mcp/mcp-config.ts";
import { OwnTools } from "../tools/own/own-tools.ts";
import { type Config, requireTokenOffLoopback } from "./config.ts";
import { broken, type Finding } from "./doctor-finding.ts";
import { Models } from "./models.ts";

const OLDEST_NODE = 24;
const MEGABYTE = 1024 * 1024;
/** Below the first little can be stored; below the second it is time to act. */
const LEAST_MEGABYTES = 100;
const FEW_MEGABYTES = 1024;
const REQUEST_MS = 10_000;
const MODEL_MS = 60_000;

const ok = (text: string): Finding => ({ state: "ok", text });

export function checkNode(): Finding {
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= OLDEST_NODE) return ok(node);
  return { state: "broken", text: `${node} is too old`, next: `install Node ${OLDEST_NODE} or newer` };
}

const folderOf = ({ EVERSTEP_STORE }: Config): string | undefined => /^lancedb:(.+)$/.exec(EVERSTEP_STORE)?.[1];

/** The folders that are written to: permissions and free space. */
export function checkFolders(config: Config): Finding[] {
  const data = folderOf(config);
  return [...(data === undefined ? [] : [data]), config.EVERSTEP_WORKSPACE].map((folder) =>
    checkFolder(resolve(folder)),
  );
}

function checkFolder(folder: string): Finding {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch {
    return { state: "broken", text: `${existing} cannot be written`, next: "change its owner, or use another folder" };
  }
  const { bavail, bsize } = statfsSync(existing);
  const megabytes = Math.floor((bavail * bsize) / MEGABYTE);
  const text = `${folder}${existing === folder ? "" : " (created at the first start)"}, ${megabytes} MB free`;
  if (megabytes < LEAST_MEGABYTES) return { state: "broken", text, next: "free some disk space" };
  return megabytes < FEW_MEGABYTES
    ? { state: "note", text, next: "free some disk space before it runs out" }
    : ok(text);
}

export async function checkStore(config: Config): Promise<Finding[]> {
  const { EVERSTEP_STORE } = config;
  const folder = folderOf(config);
  if (folder !== undefined) return [await checkEmbedded(folder)];
  if (isShared(EVERSTEP_STORE)) return [await checkPostgres(EVERSTEP_STORE)];
  return [
    {
      state: "broken",
      text: `EVERSTEP_STORE=${describeStore(EVERSTEP_STORE)} is not a store`,
      next: "use lancedb:FOLDER or postgres://USER:PASSWORD@HOST/DATABASE",
    },
  ];
}

async function checkEmbedded(folder: string): Promise<Finding> {
  const { inspectFolder } = await import("../store/embedded/journal-file.ts");
  try {
    const info = inspectFolder(folder);
    if (info === null) return ok(`lancedb:${folder} is empty`);
    const { format, newest } = info;
    if (format === newest) return ok(`lancedb:${folder} opens (format ${format})`);
    return {
      state: "note",
      text: `lancedb:${folder} has the older format ${format}`,
      next: `make a copy of the folder: the next start upgrades it to format ${newest}`,
    };
  } catch (error) {
    const isInUse = error instanceof EverstepError && error.code === "store_locked";
    return isInUse ? ok(`lancedb:${folder} is in use by a running Everstep`) : broken(error);
  }
}

async function checkPostgres(url: string): Promise<Finding> {
  const { inspectDatabase } = await import("../store/postgres/connections.ts");
  const { server_version } = await inspectDatabase(url);
  return ok(`${describeStore(url)} answers (PostgreSQL ${server_version})`);
}

export async function checkModel(config: Config, isOnline: boolean): Promise<Finding[]> {
  const model = readModel(config);
  if (!model)
    return [
      {
        state: "note",
        text: "not set, so agents answer offline",
        next: "set EVERSTEP_MODEL=provider/model and the provider's key: docs/providers/README.md",
      },
    ];
  if (!isOnline) return [ok(`${model.name} is configured; --online tests it`)];
  const llm = await new Models(config).for({});
  const call = { signal: AbortSignal.timeout(MODEL_MS), emit() {} };
  try {
    await llm?.generate({ instructions: "Reply with one word.", messages: [{ role: "user", text: "Hello" }] }, call);
    return [ok(`${model.name} answers`)];
  } catch (error) {
    return [
      {
        state: "broken",
        text: `${model.name}: ${(error as Error).message}`,
        next: "check the key, the model's name and the connection: docs/providers/README.md",
      },
    ];
  }
}

/** Loads the user's files as a start would. */
export async function checkMonikers(config: Config): Promise<Finding[]> {
  const { EVERSTEP_MONIKERS } = config;
  const { catalog } = await MonikerLoader.open(EVERSTEP_MONIKERS);
  const tools = await (await OwnTools.open(config.EVERSTEP_TOOLS)).server.tools();
  const own = catalog.size - BUILT_IN.length;
  if (own === 0 && tools.length === 0)
    return [{ state: "note", text: "none of your own", next: "`npx everstep init` creates a project with one" }];
  return [ok(`${own} in ${EVERSTEP_MONIKERS ?? "no folder"}, ${tools.length} tools of your own; all load`)];
}

export async function checkMcpServers(config: Config): Promise<Finding[]> {
  const { servers } = await readMcpConfig({ path: config.EVERSTEP_MCP, environment: process.env, taken: [] });
  if (servers.length === 0) return [ok("no servers")];
  const { McpServer } = await import("../tools/mcp/mcp-server.ts");
  const silent = { info() {}, warn() {}, debug() {} };
  return Promise.all(
    servers.map(async (settings): Promise<Finding> => {
      const server = new McpServer(settings, silent);
      try {
        const tools = await server.tools();
        const { status, error } = server.status;
        if (status === "ready") return ok(`${server.name} is connected, ${tools.length} tools`);
        const text = `${server.name} is not connected: ${error ?? "it did not answer in time"}`;
        return {
          state: "broken",
          text,
          next: "run its command by hand, or correct its entry in mcp.json: docs/tools.md",
        };
      } finally {
        await server.stop();
      }
    }),
  );
}

/** Only if a homeserver is configured: the bot is a separate command. */
export async function checkHomeserver(environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  if (!environment["MATRIX_HOMESERVER"]) return [];
  const { readMatrixConfig } = await import("../surfaces/matrix/config.ts");
  const { MATRIX_HOMESERVER, MATRIX_ACCESS_TOKEN, MATRIX_USER_ID } = readMatrixConfig(environment);
  const ask = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(new URL(path, MATRIX_HOMESERVER), { headers, signal: AbortSignal.timeout(REQUEST_MS) });
  const next = "check MATRIX_HOMESERVER and the connection: docs/matrix.md";
  const versions = await ask("/_matrix/client/versions").catch((error: Error) => error);
  if (versions instanceof Error || !versions.ok) {
    const reason =
      versions instanceof Error
        ? ((versions.cause as Error | undefined) ?? versions).message
        : `HTTP ${versions.status}`;
    return [{ state: "broken", text: `${MATRIX_HOMESERVER} does not answer as a homeserver (${reason})`, next }];
  }
  if (MATRIX_ACCESS_TOKEN === undefined) return [ok(`${MATRIX_HOMESERVER} answers; the bot logs in with its password`)];
  const whoami = await ask("/_matrix/client/v3/account/whoami", { authorization: `Bearer ${MATRIX_ACCESS_TOKEN}` });
  if (whoami.ok) return [ok(`${MATRIX_HOMESERVER} knows ${MATRIX_USER_ID}`)];
  return [
    { state: "broken", text: "the homeserver refuses MATRIX_ACCESS_TOKEN", next: "get a new one: docs/matrix.md" },
  ];
}

export async function checkPort(config: Config): Promise<Finding[]> {
  requireTokenOffLoopback(config);
  const { EVERSTEP_HOST: host, EVERSTEP_PORT: port } = config;
  const place = `${host}:${port}`;
  const problem = await new Promise<NodeJS.ErrnoException | null>((settle) => {
    const server = createServer().once("error", settle);
    server.listen({ host, port }, () => server.close(() => settle(null)));
  });
  if (!problem) return [ok(`${place} is free`)];
  const isOurs = await fetch(`http://${place}/health`, { signal: AbortSignal.timeout(REQUEST_MS) }).then(
    (answer) => answer.ok,
    () => false,
  );
  if (isOurs) return [ok(`Everstep is already running at ${place}`)];
  const text = `${place} cannot be listened on (${problem.code ?? problem.message})`;
  return [{ state: "broken", text, next: "stop what uses it, or set EVERSTEP_PORT" }];
}
