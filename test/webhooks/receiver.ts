import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { type WebhookPayload, webhookPayloadSchema } from "../../src/domain/webhook.ts";
import { within } from "../within.ts";

export type Received = { id: string; headers: Record<string, string>; body: string; payload: WebhookPayload };
type Respond = (response: ServerResponse, received: Received) => void;

const TAKE: Respond = (response) => void response.writeHead(204).end();
const WAIT_MS = 60_000;

/** A real webhook receiver, which responds as the test decides. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  respond: Respond = TAKE;
  #server: Server | undefined;
  #port = 0;
  #waiting: (() => void)[] = [];

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await receiver.listen();
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hook`;
  }

  get port(): number {
    return this.#port;
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => void this.#receive(request, response));
    this.#server = server;
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as { port: number }).port;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request).catch(() => null);
    // Its sender was killed.
    if (body === null) return;
    const headers = request.headers as Record<string, string>;
    const payload = webhookPayloadSchema.parse(JSON.parse(body));
    const received = { id: headers["webhook-id"] ?? "", headers, body, payload };
    this.received.push(received);
    this.respond(response, received);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Like a killed process. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  /** Resolves with what was received once the condition holds. */
  async until(what: string, condition: (received: readonly Received[]) => boolean): Promise<readonly Received[]> {
    const happened = async (): Promise<void> => {
      while (!condition(this.received)) await new Promise<void>((wake) => this.#waiting.push(wake));
    };
    await within(WAIT_MS, happened(), () => `${what}: ${JSON.stringify(this.received.map(({ payload }) => payload))}`);
    return this.received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** Verifies the signature with the scheme's own package. */
export function verified(secret: string, { body, headers }: Received): unknown {
  return new Webhook(secret).verify(body, headers);
}

/** Deliveries of a session, each once, in the order in which they were first received. */
export function eventsOf(received: readonly Received[], session_id: string): { id: string; payload: WebhookPayload }[] {
  const byId = new Map<string, Received>();
  for (const one of received) {
    if (one.payload.data.session_id !== session_id) continue;
    const before = byId.get(one.id);
    if (before) assert.equal(one.body, before.body, "an attempt has the body of the first one");
    else byId.set(one.id, one);
  }
  return [...byId.values()];
}
