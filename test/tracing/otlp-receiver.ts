import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import type { Environment } from "../server/spawn-everstep.ts";
import { within } from "../within.ts";
import { Fields } from "./protobuf.ts";

const WAIT_MS = 60_000;
const KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const;
const STATUSES = ["unset", "ok", "error"] as const;

type Value = string | number | boolean | Value[];
type Attributes = Record<string, Value>;
type Link = { trace_id: string; span_id: string; attributes: Attributes };
export type ReceivedSpan = {
  trace_id: string;
  span_id: string;
  /** Empty for the root span of a trace. */
  parent: string;
  name: string;
  kind: (typeof KINDS)[number];
  start: number;
  end: number;
  attributes: Attributes;
  links: Link[];
  status: (typeof STATUSES)[number];
  message: string;
  resource: Attributes;
};
type Answer = (response: ServerResponse) => void;

/** A receiver of OTLP over HTTP: decodes the protocol buffers of OpenTelemetry's trace service by field number. */
export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** The raw bodies received. */
  readonly bodies: Buffer[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  /** How requests are answered. */
  answer: Answer = (response) => response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  readonly #server: Server;
  #listeners: (() => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.#take(request, response));
  }

  static async open(): Promise<OtlpReceiver> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new OtlpReceiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The environment that makes a server send its spans here promptly. */
  get environment(): Environment {
    return { OTEL_EXPORTER_OTLP_ENDPOINT: this.url, OTEL_BSP_SCHEDULE_DELAY: "50" };
  }

  named = (name: string): ReceivedSpan[] => this.spans.filter((span) => span.name === name);
  beginning = (name: string): ReceivedSpan[] => this.spans.filter((span) => span.name.startsWith(name));
  childrenOf = ({ trace_id, span_id }: ReceivedSpan): ReceivedSpan[] =>
    this.spans.filter((span) => span.trace_id === trace_id && span.parent === span_id);

  /** Whether a text occurs in what was received. */
  wasSent = (text: string): boolean => this.bodies.some((body) => body.includes(text));

  /** What `look` finds, once it finds something. */
  async until<Found>(what: string, look: () => Found | undefined | false): Promise<Found> {
    const match = Promise.withResolvers<Found>();
    const listener = (): void => {
      const seen = look();
      if (seen !== undefined && seen !== false) match.resolve(seen);
    };
    this.#listeners.push(listener);
    listener();
    try {
      const names = () => `${what}; there are ${this.spans.map(({ name }) => name).join(", ")}`;
      return await within(WAIT_MS, match.promise, names);
    } finally {
      this.#listeners = this.#listeners.filter((one) => one !== listener);
    }
  }

  /** The only span with that name and session, once it has arrived. */
  span(name: string, session_id: string): Promise<ReceivedSpan> {
    return this.until(`the span ${name} of ${session_id}`, () => this.of(session_id, name)[0]);
  }

  of = (session_id: string, name: string): ReceivedSpan[] =>
    this.named(name).filter(({ attributes }) => attributes["gen_ai.conversation.id"] === session_id);

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await buffer(request);
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    this.headers.push(request.headers);
    this.bodies.push(body);
    if (request.url === "/v1/traces" && request.headers["content-type"] === "application/x-protobuf")
      this.spans.push(...spansIn(body));
    this.answer(response);
    for (const listener of this.#listeners) listener();
  }
}

function spansIn(body: Buffer): ReceivedSpan[] {
  return new Fields(body).messages(1).flatMap((resourceSpans) => {
    const fields = new Fields(resourceSpans);
    const resource = attributesOf(new Fields(fields.bytes(1)).messages(1));
    return fields.messages(2).flatMap((scoped) => new Fields(scoped).messages(2).map((span) => toSpan(span, resource)));
  });
}

function toSpan(bytes: Buffer, resource: Attributes): ReceivedSpan {
  const fields = new Fields(bytes);
  const status = new Fields(fields.bytes(15));
  return {
    trace_id: fields.hex(1),
    span_id: fields.hex(2),
    parent: fields.hex(4),
    name: fields.text(5),
    kind: KINDS[fields.int(6)] ?? assert.fail("the kind is unknown"),
    start: fields.int(7) / 1e6,
    end: fields.int(8) / 1e6,
    attributes: attributesOf(fields.messages(9)),
    links: fields.messages(13).map((link) => {
      const of = new Fields(link);
      return { trace_id: of.hex(1), span_id: of.hex(2), attributes: attributesOf(of.messages(4)) };
    }),
    status: STATUSES[status.int(3)] ?? assert.fail("the status is unknown"),
    message: status.text(2),
    resource,
  };
}

const attributesOf = (pairs: Buffer[]): Attributes =>
  Object.fromEntries(
    pairs.map((pair) => {
      const fields = new Fields(pair);
      return [fields.text(1), valueOf(fields.bytes(2))];
    }),
  );

function valueOf(bytes: Buffer): Value {
  const fields = new Fields(bytes);
  if (fields.has(1)) return fields.text(1);
  if (fields.has(2)) return fields.int(2) === 1;
  if (fields.has(3)) return fields.int(3);
  if (fields.has(4)) return fields.double(4);
  return new Fields(fields.bytes(5)).messages(1).map(valueOf);
}
