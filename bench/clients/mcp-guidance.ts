import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { startEverstep } from "../server/everstep-process.ts";
import { summarize } from "../stats.ts";

const WARM_UP = 20;

/** One tool call: the request, the step that uses the guidance, and the receipt in the response. */
export async function measureMcpGuidance({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using server = await startEverstep(join(folder, "mcp"));
  const client = new Client({ name: "a bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.port}/mcp`)));
  const call = async (name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const { isError, structuredContent, content } = await client.callTool({ name, arguments: args });
    if (isError || !structuredContent) throw new Error(`${name}: ${JSON.stringify(content)}`);
    return structuredContent as Record<string, unknown>;
  };
  const { session_id } = await call("start_agent", { moniker: "echo" });
  const times: number[] = [];
  for (let index = -WARM_UP; index < (quick ? 50 : 200); index++) {
    const begun = performance.now();
    const { receipt } = await call("guide", { session_id, guidance: `try ${index}` });
    if (receipt !== "consumed") throw new Error(`the receipt is ${String(receipt)}`);
    if (index >= 0) times.push(performance.now() - begun);
  }
  await client.close();
  const { p50, p99, max } = summarize(times);
  const name = "guidance by MCP to its receipt";
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: below(50) },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: null },
    { figure: `${name}, longest`, measured: max, unit: "ms", bar: null },
  ];
}
