import { toolsSchema } from "../../../domain/tool-list.ts";
import type { ApiClient } from "../client.ts";
import { coloured, oneLine, type Style, table } from "../output.ts";
import { findSession } from "../sessions.ts";

export type ToolsOptions = { session?: string; json?: boolean };

const POLICY_STYLES: Readonly<Record<string, Style>> = { run: "green", ask: "yellow", deny: "red" };

/** Lists the tools with their policies, and the servers they come from. */
export async function tools(client: ApiClient, { session, json }: ToolsOptions): Promise<void> {
  const session_id = session === undefined ? undefined : (await findSession(client, session)).session_id;
  const answer = await client.get(toolsSchema, "/api/tools", { session_id });
  if (json) return console.log(JSON.stringify(answer));
  const rows = answer.tools.map(({ name, policy, read_only, idempotent, destructive, description }) => [
    name,
    coloured(POLICY_STYLES[policy] ?? "reset", policy),
    read_only ? "reads" : destructive ? "destroys" : idempotent ? "repeatable" : "writes",
    oneLine(description, 80),
  ]);
  console.log(table(["TOOL", "POLICY", "KIND", "DESCRIPTION"], rows));
  const servers = answer.servers.map(({ name, status, error }) => [
    name,
    coloured(status === "ready" ? "green" : status === "failed" ? "red" : "yellow", status),
    oneLine(error ?? "", 100),
  ]);
  console.log(`\n${table(["SERVER", "STATUS", "ERROR"], servers)}`);
}
