import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { ServerFrame } from "../../src/agent-api/messages.ts";

export const READY: ServerFrame = { type: "status", status: "ready", session_id: "default-1" };

/**
 * The agent's side of the protocol, controlled by the test, for what no real agent does: silence, invalid frames, unusual
 * timing.
 */
export class StandInAgent implements AsyncDisposable {
  /** Every connection so far, and when it was made. */
  readonly connections: { socket: WebSocket; at: number }[] = [];
  readonly received: { text: string; request_id?: string }[] = [];
  readonly #server: WebSocketServer;
  #wake = () => {};

  private constructor(server: WebSocketServer, greeting: ServerFrame | null) {
    this.#server = server;
    server.on("connection", (socket) => {
      this.connections.push({ socket, at: performance.now() });
      socket.on("message", (data) => {
        this.received.push(JSON.parse((data as Buffer).toString()) as { text: string });
        this.#wake();
      });
      if (greeting) socket.send(JSON.stringify(greeting));
      this.#wake();
    });
  }

  static async open(greeting: ServerFrame | null = READY, port = 0): Promise<StandInAgent> {
    const server = new WebSocketServer({ host: "127.0.0.1", port });
    await once(server, "listening");
    return new StandInAgent(server, greeting);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/agent_ws/`;
  }

  /** Sends on the newest connection. */
  send(frame: ServerFrame | string): void {
    this.connections.at(-1)?.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo())
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#server.clients) client.terminate();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }
}

/** Accepts connections and sends nothing at all. */
export async function silentServer(): Promise<Server & AsyncDisposable> {
  const server = createServer((socket) => void socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(server, {
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  });
}
