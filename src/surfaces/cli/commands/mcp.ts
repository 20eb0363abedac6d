import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { redactUrl, redactUrls } from "../../../domain/redact.ts";
import { asTyped } from "../as-typed.ts";

export type McpOptions = { url: string; token?: string };

/** The error code that JSON-RPC leaves to servers, for a request that did not reach Everstep. */
const UNREACHABLE = -32000;

type Message = Parameters<StdioServerTransport["send"]>[0];

/**
 * Passes what an MCP client says over stdio on to a running server, and its answers back, as they are. Nothing is kept between
 * messages, so a server that restarts meanwhile costs the requests under way and no more. It ends with its client.
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

/** The 2025 revision agrees on a version once, and then names it in every request. */
function protocolVersionIn(message: Message): string | null {
  if (!("result" in message)) return null;
  const { protocolVersion } = message.result as { protocolVersion?: unknown };
  return typeof protocolVersion === "string" ? protocolVersion : null;
}

function errorFor(message: Message, error: unknown, url: string): Message | null {
  if (!("method" in message) || !("id" in message)) return null;
  const reason = redactUrls(error instanceof Error ? error.message : String(error));
  const what = `${redactUrl(url)} does not answer (${reason}); start it with \`${asTyped()} serve\`, or name another place with --url, and give its token with EVERSTEP_TOKEN`;
  return { jsonrpc: "2.0", id: message.id, error: { code: UNREACHABLE, message: what } };
}
