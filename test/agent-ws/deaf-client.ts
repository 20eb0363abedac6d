import { once } from "node:events";
import { connect, type Socket } from "node:net";

const MASK_BIT = 0x80;
const TEXT_FRAME = 0x81;
const PONG_FRAME = 0x8a;
const NO_MASK = Buffer.alloc(4);

/** A client that sends, but reads only what `hear` waits for: the rest fills the buffers in between. */
export class DeafClient implements Disposable {
  readonly #socket: Socket;
  readonly gone: Promise<void>;
  #isGone = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.gone = new Promise((resolve) => socket.once("close", () => resolve()));
    void this.gone.then(() => {
      this.#isGone = true;
    });
    // A client that does not read notices a closed connection only when it writes.
    socket.on("error", () => {});
  }

  static async open(url: string, path = "/agent_ws/"): Promise<DeafClient> {
    const { hostname, port } = new URL(url);
    // Paused from the first byte: not even the response to the handshake is read.
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }).pause();
    await once(socket, "connect");
    const client = new DeafClient(socket);
    const key = Buffer.alloc(16).toString("base64");
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`,
    );
    return client;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Resolves when the bytes have been sent. */
  async send(text: string): Promise<void> {
    const payload = Buffer.from(text);
    const head =
      payload.length < 126
        ? [TEXT_FRAME, MASK_BIT | payload.length]
        : [TEXT_FRAME, MASK_BIT | 126, payload.length >> 8, payload.length & 0xff];
    if (this.#socket.write(Buffer.concat([Buffer.from(head), NO_MASK, payload]))) return;
    await Promise.race([new Promise<void>((resolve) => this.#socket.once("drain", resolve)), this.gone]);
  }

  /** An unsolicited pong. */
  pong(): void {
    this.#socket.write(Buffer.concat([Buffer.from([PONG_FRAME, MASK_BIT]), NO_MASK]));
  }

  /** Reads until the text arrives, and no further. */
  async hear(text: string): Promise<void> {
    let heard = "";
    const { promise, resolve } = Promise.withResolvers<void>();
    const listener = (chunk: Buffer): void => {
      heard += chunk.toString("latin1");
      if (heard.includes(text)) resolve();
    };
    this.#socket.on("data", listener).resume();
    await promise;
    this.#socket.pause().off("data", listener);
  }

  ask(text: string): Promise<void> {
    return this.send(JSON.stringify({ type: "user_message", text }));
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
