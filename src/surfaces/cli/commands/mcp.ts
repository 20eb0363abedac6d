import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { redactUrl, redactUrls } from "../../../domain/redact.ts";
import { asTyped } from "../as-typed.ts";

export type McpOptions = { url: string; token?: string };

/** The JSON-RPC error code reserved for servers, for a request that did not reach Everstep. */
const UNREACHABLE = -32000;

type Message = Parameters<StdioServerTransport["send"]>[0];

/**
 * Forwards an MCP client's messages from stdio to a running server, and its responses back, unchanged. It is stateless, so a
 * restart of the server only costs the requests in progress. It ends with its client.
 */
export async function mcp({ url, token }: McpOptions): Promise<void> {
  const client = new StdioServerTransport();
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const server = new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } });
  const ended = Promise.withResolvers<void>();
  const reply = async (message: Message | null) => {
    if (message) await client.send(message).catch(() => {});
  };
  Object.assign(client, {
    onclose: ended.resolve,
    onmessage: (message: Message) =>
      void server.send(message).catch((error: unknown) => reply(errorFor(message, error, url))),
  });
  Object.assign(server, {
    onmessage(message: Message) {
      const version = protocolVersionIn(message);
      if (version !== null) server.setProtocolVersion(version);
      void reply(message);
    },
    onerror: (error: Error) => console.error(redactUrls(error.message)),
  });
  await server.start();
  await client.start();
  await ended.promise;
  await server.close();
}

/** The 2025 revision negotiates a version once, then names it in every request. */
function protocolVersionIn(message: Message): string | null {
  if (!("result" in message)) return null;
  const { protocolVersion } = message.result as { protocolVersion?: unknown };
  return typeof protocolVersion === "string" ? protocolVersion : null;
}

function errorFor(message: Message, error: unknown, url: string): Message | null {
  if (!("method" in message) || !("id" in message)) return null;
  const reason = redactUrls(error instanceof Error ? error.message : String(error));
  const what = `${redactUrl(url)} does not answer (${reason}); start it with \`${asTyped()} serve\`, or pass another address with --url, and its token with EVERSTEP_TOKEN`;
  return { jsonrpc: "2.0", id: message.id, error: { code: UNREACHABLE, message: what } };
}
