import { once } from "node:events";
import { connect, type Socket } from "node:net";

export type Answer = { status: number; body: Buffer };

const HEAD_END = "\r\n\r\n";
const NOTHING: Buffer = Buffer.alloc(0);

/**
 * A persistent HTTP/1.1 connection with one request at a time. Node's own client uses four times the CPU per request, so the
 * bench would measure the load generator rather than the server.
 */
export class KeptConnection implements Disposable {
  readonly #socket: Socket;
  #received = NOTHING;
  #waiting: PromiseWithResolvers<Answer> | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error) => this.#waiting?.reject(error));
    socket.on("close", () => this.#waiting?.reject(new Error("the server ended a connection before it answered")));
  }

  static async open(port: number): Promise<KeptConnection> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new KeptConnection(socket);
  }

  send(request: string): Promise<Answer> {
    this.#waiting = Promise.withResolvers();
    this.#socket.write(request);
    return this.#waiting.promise;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const bodyStart = headEnd + HEAD_END.length;
    const bodyEnd = bodyStart + Number(/^content-length: (\d+)/im.exec(head)?.[1]);
    if (this.#received.length < bodyEnd) return;
    const body = this.#received.subarray(bodyStart, bodyEnd);
    this.#received = NOTHING;
    this.#waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }
}

/** `count` connections, closed with their scope. */
export async function openConnections(port: number, count: number): Promise<KeptConnection[] & Disposable> {
  const connections = await Promise.all(Array.from({ length: count }, () => KeptConnection.open(port)));
  return Object.assign(connections, {
    [Symbol.dispose]() {
      for (const connection of connections) connection[Symbol.dispose]();
    },
  });
}

export const getRequest = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;

export function postRequest(path: string, body: unknown): string {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}`;
  return `${head}${HEAD_END}${text}`;
}

/** The body of the response; fails unless the response is successful. */
export async function sendChecked<Body>(connection: KeptConnection, request: string): Promise<Body> {
  const { status, body } = await connection.send(request);
  if (status >= 300) throw new Error(`a request of the bench was answered ${status}: ${body.toString()}`);
  return JSON.parse(body.toString()) as Body;
}
