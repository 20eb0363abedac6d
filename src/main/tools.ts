import { join } from "node:path";
import type { Logger } from "pino";
import { ActionQueue } from "../actions/action-queue.ts";
import { prepareFrameActions } from "../actions/frame-actions.ts";
import type { GuidanceLimit } from "../actions/guidance-limit.ts";
import type { Catalog } from "../monikers/catalog.ts";
import type { Store } from "../store/store.ts";
import { builtInServers } from "../tools/builtin/built-in-servers.ts";
import { type McpServerConfig, readMcpConfig } from "../tools/mcp/mcp-config.ts";
import { OwnTools } from "../tools/own/own-tools.ts";
import { Skills, SkillsServer } from "../tools/skills/skills.ts";
import { type ToolObserver, ToolRegistry } from "../tools/tool-registry.ts";
import type { ToolServer } from "../tools/tool-server.ts";
import type { Config } from "./config.ts";
import type { MonikerReloads } from "./moniker-reloads.ts";

type ToolParts = { store: Store; catalog: Catalog; limit: GuidanceLimit };

/** The built-in tools. */
export const newToolRegistry = ({ workspace, ...parts }: ToolParts & { workspace: string }): ToolRegistry =>
  new ToolRegistry({ workspace, servers: builtIn(parts) });

function builtIn({ store, catalog, limit }: ToolParts): ToolServer[] {
  // Only checks a frame's actions: it writes nothing.
  const queue = new ActionQueue(store, catalog, { limit });
  return builtInServers({
    store,
    monikers: () => catalog.values(),
    async checkActions(actions, sender) {
      const rows = await prepareFrameActions(queue, actions, sender);
      rows.written();
    },
  });
}

/** Every tool of this process. */
export type Tools = {
  registry: ToolRegistry;
  /** How many are not built in. */
  summary: { tools: number; mcp_servers: number };
  /** Starts connecting to servers; otherwise they are connected on first use. */
  start(): void;
};

type Surroundings = { atStop: (what: string, stop: () => unknown) => void; reloads: Pick<MonikerReloads, "addTools"> };

export async function openTools(
  config: Config,
  { log, observer, ...parts }: ToolParts & { log: Logger; observer: ToolObserver },
  { atStop, reloads }: Surroundings,
): Promise<Tools> {
  const workspace = config.EVERSTEP_WORKSPACE;
  const folder = config.EVERSTEP_SKILLS ?? join(workspace, "skills");
  const onProblem = (file: string, reason: string) => log.warn({ file, reason }, "a skill cannot be used");
  const skills = new Skills({ folder, workspace, onProblem });
  const own = await OwnTools.open(config.EVERSTEP_TOOLS);
  const here = [...builtIn(parts), new SkillsServer(skills), own.server];
  const taken = here.map(({ name }) => name);
  const mcp = await readMcpConfig({ path: config.EVERSTEP_MCP, environment: process.env, taken });
  const servers = await mcpServers(mcp.servers, log);
  atStop("tool servers", () => Promise.all(servers.map((server) => server.stop())));
  reloads.addTools(own);
  const registry = new ToolRegistry({
    workspace,
    servers: [...here, ...servers],
    rules: mcp.rules,
    skills: skills.list,
    observer,
  });
  return {
    registry,
    summary: { tools: (await own.server.tools()).length, mcp_servers: servers.length },
    start() {
      for (const server of servers) server.start();
    },
  };
}

/** The client is large: loaded only if there are servers. */
async function mcpServers(configs: McpServerConfig[], log: Logger) {
  if (configs.length === 0) return [];
  const { McpServer } = await import("../tools/mcp/mcp-server.ts");
  return configs.map((config) => new McpServer(config, log));
}
