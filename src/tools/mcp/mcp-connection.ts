import { AsyncLocalStorage } from "node:async_hooks";
import { Client, type ClientOptions, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { VERSION } from "../../domain/version.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** A server that does not answer a request only newer servers understand counts as an older one after this many milliseconds. */
const PROBE_MS = 10_000;
/** How long a server may take to end its session, in milliseconds. */
const TERMINATE_MS = 1000;
export type ConnectionEvents = {
  /** A line of the server's log. */
  onLog: (line: string) => void;
  /** Something the server sent cannot be parsed, or a stream broke. */
  onTrouble: (error: Error) => void;
  onTools: (tools: Tool[]) => void;
  /** The connection ended on its own; `why` says how, if known. */
  onClosed: (why: string) => void;
  /** The server asks a person during a call, where only an immediate answer is possible. */
  onQuestion: (message: string) => void;
};

export type McpConnection = {
  client: Client;
  tools: Tool[];
  /** Of the process, if it was started here. */
  pid: number | null;
  /** Ends it: a process by closing its input, then SIGTERM, then SIGKILL. */
  close(): Promise<void>;
};

/**
 * Connects once. The protocol revision is negotiated on the connection itself, so that a process is started only once. The few
 * servers that exit on an unknown request are restarted and treated as older ones.
 */
export async function connectMcp(
  config: McpServerConfig,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<McpConnection> {
  try {
    return await connect(config, events, signal, {});
  } catch (error) {
    if (config.kind !== "stdio" || signal.aborted || !isClosedByProbe(error)) throw error;
    return connect(config, events, signal, { prior: { kind: "legacy" } });
  }
}

const isClosedByProbe = (error: unknown): boolean =>
  error instanceof Error && error.message.includes("closed during the server/discover probe");

async function connect(
  config: McpServerConfig,
  events: ConnectionEvents,
  signal: AbortSignal,
  how: { prior?: { kind: "legacy" } },
): Promise<McpConnection> {
  const client = new Client({ name: "everstep", version: VERSION }, clientOptions(events));
  const transport = newTransport(config, events);
  const timeout = config.settings.connect_timeout_s * 1000;
  const close = async (): Promise<void> => {
    Object.assign(client, { onclose: () => {} });
    if (transport instanceof StreamableHTTPClientTransport) await terminate(transport);
    await client.close();
    await transport.close();
  };
  // The library ignores the signal while it negotiates the revision.
  const abort = () => void transport.close().catch(() => {});
  signal.addEventListener("abort", abort, { once: true });
  Object.assign(client, { onerror: events.onTrouble });
  client.setRequestHandler("elicitation/create", ({ params }) => {
    events.onQuestion(params.message);
    return { action: "cancel" };
  });
  try {
    await client.connect(transport, { ...how, timeout, signal });
    const onclose = () => events.onClosed((transport instanceof StdioTransport && transport.ending) || "it ended");
    Object.assign(client, { onclose });
    const { tools } = await client.listTools(undefined, { timeout, signal });
    return { client, tools, pid: transport instanceof StdioTransport ? transport.pid : null, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const clientOptions = (events: ConnectionEvents): ClientOptions => ({
  versionNegotiation: { mode: "auto", probe: { timeoutMs: PROBE_MS } },
  capabilities: { elicitation: { form: {}, url: {} } },
  inputRequired: { autoFulfill: false },
  listChanged: {
    tools: {
      onChanged(error, tools) {
        if (tools) events.onTools(tools);
        else if (error) events.onTrouble(error);
      },
    },
  },
});

const newTransport = (config: McpServerConfig, { onLog }: ConnectionEvents) =>
  config.kind === "stdio"
    ? new StdioTransport(config, onLog)
    : new StreamableHTTPClientTransport(new URL(config.url), {
        requestInit: { headers: config.headers },
        fetch: fetchInTrace,
      });

const trace = new AsyncLocalStorage<string>();

/** Runs a call whose HTTP requests carry the `traceparent` header. */
export const inTrace = <Result>(traceparent: string | undefined, call: () => Result): Result =>
  traceparent === undefined ? call() : trace.run(traceparent, call);

function fetchInTrace(url: string | URL, init?: RequestInit): Promise<Response> {
  const traceparent = trace.getStore();
  if (traceparent === undefined) return fetch(url, init);
  const headers = new Headers(init?.headers);
  headers.set("traceparent", traceparent);
  return fetch(url, { ...init, headers });
}

/** Lets a server with sessions drop this one. A server that does not answer drops it eventually. */
async function terminate(transport: StreamableHTTPClientTransport): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, TERMINATE_MS);
  await Promise.race([transport.terminateSession().catch(() => {}), limit.promise]);
  clearTimeout(timer);
}
