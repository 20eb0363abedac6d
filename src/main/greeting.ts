import { resolve } from "node:path";
import { describeStore } from "../store/open-store.ts";
import type { Config } from "./config.ts";

type StartSummary = {
  /** Sessions resumed. */
  revived: number;
  /** The user's own. */
  monikers: number;
  tools: number;
  mcp_servers: number;
};

/** What to print at the start: the address and the four lines that matter. A worker has no address. */
export function greeting(address: string | null, config: Config, summary: StartSummary): string {
  const { EVERSTEP_STORE, EVERSTEP_MODEL } = config;
  const store = describeStore(EVERSTEP_STORE);
  const { revived } = summary;
  if (address === null) return `Everstep is running (store ${store}, ${revived} sessions resumed)`;
  const folder = /^lancedb:(.+)$/.exec(EVERSTEP_STORE)?.[1];
  return `Everstep is up at ${address} (store ${store}${revived > 0 ? `, ${revived} sessions resumed` : ""})

Console  ${address}/ (the API is described at ${address}/docs)
Data     ${folder === undefined ? store : resolve(folder)}; Ctrl-C stops, and the next start resumes everything
Model    ${EVERSTEP_MODEL ?? "none, so agents answer offline; to use one, set EVERSTEP_MODEL=anthropic/… and ANTHROPIC_API_KEY in .env"}
Yours    ${describeOwn(summary) || "nothing yet; `npx everstep init` creates a project, `npx everstep demo` shows an agent at work"}`;
}

const describeOwn = ({ monikers, tools, mcp_servers }: StartSummary): string =>
  [counted(monikers, "moniker"), counted(tools, "tool"), counted(mcp_servers, "MCP server")].filter(Boolean).join(", ");

const counted = (count: number, what: string): string =>
  count === 0 ? "" : `${count} ${what}${count === 1 ? "" : "s"}`;
