import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, test } from "node:test";
import { childTraceparent, readTraceparent, toTraceparent } from "../../src/domain/traceparent.ts";
import { MonikerFiles } from "../monikers/moniker-files.ts";
import { NEEDS_PYTHON, PythonWorker } from "../remote/python.ts";
import { StubWorker } from "../remote/stub-worker.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { OtlpReceiver, type ReceivedSpan } from "./otlp-receiver.ts";

const placeOf = ({ trace_id, span_id }: ReceivedSpan): string => toTraceparent({ trace_id, span_id, is_sampled: true });

describe("a traceparent", () => {
  test("is parsed as defined by W3C Trace Context; anything else is ignored", () => {
    const trace_id = "0af7651916cd43dd8448eb211c80319c";
    const span_id = "b7ad6b7169203331";
    assert.deepEqual(readTraceparent(`00-${trace_id}-${span_id}-01`), { trace_id, span_id, is_sampled: true });
    assert.deepEqual(readTraceparent(`00-${trace_id}-${span_id}-00`), { trace_id, span_id, is_sampled: false });
    assert.ok(readTraceparent(`cc-${trace_id}-${span_id}-03-what-comes-later`));
    const wrong = [
      undefined,
      7,
      {},
      "",
      `ff-${trace_id}-${span_id}-01`,
      `00-${"0".repeat(32)}-${span_id}-01`,
      `00-${trace_id}-${"0".repeat(16)}-01`,
      `00-${trace_id.toUpperCase()}-${span_id}-01`,
      `00-${trace_id}-${span_id}`,
      `00-${trace_id}-${span_id}-01\n`,
      `00-${trace_id}-${span_id}-01-${"x".repeat(10_000)}`,
    ];
    for (const text of wrong) assert.equal(readTraceparent(text), null, JSON.stringify(text));
    const child = childTraceparent(`00-${trace_id}-${span_id}-01`);
    assert.equal(readTraceparent(child)?.trace_id, trace_id);
    assert.notEqual(readTraceparent(child)?.span_id, span_id);
  });
});

describe("the trace goes on", TIMEOUT, () => {
  test("in a worker over HTTP, by a header and in the context", async () => {
    await using receiver = await OtlpReceiver.open();
    await using worker = await StubWorker.start([{ name: "far", description: "Far." }], ({ frame }, response) => {
      const { step, state } = frame;
      response.end(JSON.stringify({ frame: { step, next_step: step, state, done: true } }));
    });
    await using server = await ServerProcess.start({ ...receiver.environment, EVERSTEP_REMOTE_MONIKERS: worker.url });
    const world = await World.of(server);
    const { session_id } = await world.api.create("far");
    const step = await receiver.span("step far", session_id);
    assert.equal(step.kind, "client");
    const request = worker.received.find(({ method }) => method === "POST");
    assert.equal(request?.headers["traceparent"], placeOf(step));
    const { context } = JSON.parse(request?.text ?? "") as { context: { traceparent?: string } };
    assert.equal(context.traceparent, placeOf(step));
    world.close();
  });

  test("in monikers of Python, over HTTP and over stdio", NEEDS_PYTHON, async () => {
    await using receiver = await OtlpReceiver.open();
    await using files = await MonikerFiles.with({ "near.py": tellingMoniker("near") });
    await using others = await MonikerFiles.with({ "far.py": tellingMoniker("far") });
    await using worker = await PythonWorker.start(join(others.folder, "far.py"));
    await using server = await ServerProcess.start({
      ...receiver.environment,
      EVERSTEP_REMOTE_MONIKERS: worker.url,
      EVERSTEP_MONIKERS: files.folder,
    });
    const world = await World.of(server);
    for (const moniker of ["near", "far"]) {
      const { session_id } = await world.api.create(moniker);
      const { result } = await world.status(session_id, "done");
      assert.equal(result, placeOf(await receiver.span(`step ${moniker}`, session_id)));
    }
    world.close();
  });

  test("in an MCP server over HTTP, by a header and in _meta, below the call of the tool", async () => {
    await using receiver = await OtlpReceiver.open();
    await using mcp = await ToolEndpoint.open();
    await using files = await MonikerFiles.with({ "caller.ts": CALLER });
    const config = join(files.folder, "..", "mcp.json");
    await writeFile(config, JSON.stringify({ mcpServers: { far: { url: mcp.url } } }));
    await using server = await ServerProcess.start({
      ...receiver.environment,
      EVERSTEP_MONIKERS: files.folder,
      EVERSTEP_MCP: config,
    });
    const world = await World.of(server);
    const { session_id } = await world.api.create("caller");
    await world.status(session_id, "done");
    const call = await receiver.span("execute_tool far/look", session_id);
    const step = await receiver.span("step caller", session_id);
    assert.equal(call.parent, step.span_id);
    const [received] = mcp.calls;
    assert.equal(received?.headers["traceparent"], placeOf(call));
    assert.equal(received?.meta?.["traceparent"], placeOf(call));
    world.close();
  });
});

const tellingMoniker = (name: string): string => `from everstep import moniker, serve

@moniker(name="${name}")
def tell(frame, context):
    return frame.out(text=str(context.traceparent), done=True)

serve()
`;

const CALLER = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "caller", kind: "finite", description: "Calls a tool.", params: z.object({}),
  async step({ step, state }, { tools }) {
    const { text } = await tools.call("far/look", {});
    return { step, next_step: step, state, done: true, text };
  },
});
`;

type JsonRpc = { id?: number; method: string; params?: { protocolVersion?: string; _meta?: Record<string, unknown> } };

/** An MCP server of the 2025 revision with one tool, which records the headers and metadata of its calls. */
class ToolEndpoint implements AsyncDisposable {
  readonly calls: { headers: IncomingHttpHeaders; meta: Record<string, unknown> | undefined }[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #results: Record<string, object | undefined> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "far", version: "1" },
    },
    "tools/list": {
      tools: [
        { name: "look", description: "Looks.", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
      ],
    },
    "tools/call": { content: [{ type: "text", text: "seen" }] },
  };

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method, params } = (await json(request)) as JsonRpc;
    if (id === undefined) return void response.writeHead(202).end();
    if (method === "tools/call") this.calls.push({ headers: request.headers, meta: params?._meta });
    const result = this.#results[method];
    const answer = result ? { result } : { error: { code: -32_601, message: "there is no such method" } };
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }

  static async open(): Promise<ToolEndpoint> {
    const endpoint = new ToolEndpoint();
    endpoint.#server.listen(0, "127.0.0.1");
    await once(endpoint.#server, "listening");
    return endpoint;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
