import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

const REPLY = /Reply(?: only with)?: ((?:Saved|Loaded): \S+)$/;

/**
 * An agent with the smallest possible protocol: a status without a session, answers without request ids, one WebSocket at
 * `/agent_ws/` and no other endpoint, so that `POST /reset` is a 404. It repeats every text and confirms every confirmation
 * request.
 */
export class SeedAgent implements AsyncDisposable {
  /** The texts it received. */
  readonly asked: string[] = [];
  /** The HTTP requests it received. */
  readonly requests: string[] = [];
  readonly #http: Server;
  readonly #sockets: WebSocketServer;

  private constructor(http: Server) {
    this.#http = http;
    this.#sockets = new WebSocketServer({ server: http, path: "/agent_ws/" });
    http.on("request", (request, response) => {
      this.requests.push(`${request.method} ${request.url}`);
      response.writeHead(404, { "content-type": "application/json" }).end('{"detail":"Not Found"}');
    });
    this.#sockets.on("connection", (socket) => {
      socket.send('{"type":"status"}');
      socket.on("message", (data) => this.#answer(socket, JSON.parse((data as Buffer).toString()) as { text: string }));
    });
  }

  static async open(): Promise<SeedAgent> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    return new SeedAgent(http);
  }

  get ws_url(): string {
    return `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}/agent_ws/`;
  }

  get base_url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  #answer(socket: WebSocket, { text }: { text: string }): void {
    this.asked.push(text);
    if (text === "fail") return socket.send('{"type":"error","message":"out of order"}');
    const answer = REPLY.exec(text)?.[1] ?? `You said: ${text}`;
    for (const piece of answer.match(/\S+\s*/g) ?? [])
      socket.send(JSON.stringify({ type: "event_text_chunk", text: piece }));
    // This story continues until the listener leaves.
    if (text !== "a tale without end") socket.send('{"type":"event_end","tokens_used":7}');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#sockets.clients) client.terminate();
    this.#sockets.close();
    const closed = once(this.#http, "close");
    this.#http.close();
    this.#http.closeAllConnections();
    await closed;
  }
}
