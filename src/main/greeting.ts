import { resolve } from "node:path";
import { describeStore } from "../store/open-store.ts";
import type { Config } from "./config.ts";

type Found = {
  /** Sessions that go on. */
  revived: number;
  /** Of the person's own. */
  monikers: number;
  tools: number;
  mcp_servers: number;
};

/** What a person needs to know at the start: where it is, and the four lines that matter. A worker has no address. */
export function greeting(address: string | null, config: Config, found: Found): string {
  const { EVERSTEP_STORE, EVERSTEP_MODEL } = config;
  const store = describeStore(EVERSTEP_STORE);
  const { revived } = found;
  if (address === null) return `Everstep works (store ${store}, ${revived} sessions go on)`;
  const folder = /^lancedb:(.+)$/.exec(EVERSTEP_STORE)?.[1];
  return `Everstep is up at ${address} (store ${store}${revived > 0 ? `, ${revived} sessions go on` : ""})

Console  ${address}/ (the API is described at ${address}/docs)
Data     ${folder === undefined ? store : resolve(folder)}; Ctrl-C stops, and everything goes on at the next start
Model    ${EVERSTEP_MODEL ?? "none, so agents answer offline; set EVERSTEP_MODEL=anthropic/… and ANTHROPIC_API_KEY in .env for one"}
Yours    ${describeFound(found) || "nothing yet; `npx everstep init` makes a project, `npx everstep demo` shows an agent at work"}`;
}

const describeFound = ({ monikers, tools, mcp_servers }: Found): string =>
  [counted(monikers, "moniker"), counted(tools, "tool"), counted(mcp_servers, "MCP server")].filter(Boolean).join(", ");

const counted = (count: number, what: string): string =>
  count === 0 ? "" : `${count} ${what}${count === 1 ? "" : "s"}`;
