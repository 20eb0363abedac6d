import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import { type ServerFrame, serverFrameSchema } from "../../src/agent-api/messages.ts";
import { within } from "../within.ts";

const WAIT_MS = 60_000;
export type Answer = { text: string; tokens_used: number; chunks: string[] };
type Tagged = { request_id?: string; accepts?: string[] };

export const agentUrl = (url: string, query = ""): string => `${url.replace(/^http/, "ws")}/agent_ws/${query}`;

/** An independent client of the one-chat WebSocket: it sends text and keeps the frames it receives. */
export class RawClient implements Disposable {
  /** Every frame so far, in order of arrival. */
  readonly frames: ServerFrame[] = [];
  readonly socket: WebSocket;
  readonly closed: Promise<number>;
  #read = 0;
  #wake = () => {};

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data, isBinary) => {
      assert.equal(isBinary, false);
      this.frames.push(serverFrameSchema.parse(JSON.parse((data as Buffer).toString())));
      this.#wake();
    });
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    void this.closed.then(() => this.#wake());
  }

  /** Connects, and resolves when the chat reports that it is ready. */
  static async open(url: string, options: ClientOptions & { query?: string } = {}): Promise<RawClient> {
    const client = await RawClient.connect(url, options);
    const status = await client.next();
    assert.ok(status.type === "status" && status.status === "ready", JSON.stringify(status));
    return client;
  }

  /** Connects without waiting for any frame. */
  static async connect(
    url: string,
    { query, ...options }: ClientOptions & { query?: string } = {},
  ): Promise<RawClient> {
    const socket = new WebSocket(agentUrl(url, query), options);
    const client = new RawClient(socket);
    await once(socket, "open");
    return client;
  }

  /** The session that the chat named last. */
  get session_id(): string {
    const status = this.frames.findLast((frame) => frame.type === "status");
    return status?.session_id ?? assert.fail("the chat did not say which session it is");
  }

  send(frame: object | string | Buffer): void {
    const isRaw = typeof frame === "string" || Buffer.isBuffer(frame);
    this.socket.send(isRaw ? frame : JSON.stringify(frame));
  }

  ask(text: string, tagged: Tagged = {}): void {
    this.send({ type: "user_message", text, ...tagged });
  }

  /** The next frame that was not returned before. */
  async next(): Promise<ServerFrame> {
    const index = this.#read++;
    const frame = (async () => {
      for (;;) {
        const nextFrame = this.frames[index];
        if (nextFrame) return nextFrame;
        assert.ok(this.socket.readyState <= WebSocket.OPEN, `closed after ${JSON.stringify(this.frames)}`);
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    })();
    return within(WAIT_MS, frame, () => `no frame after ${JSON.stringify(this.frames.slice(-3))}`);
  }

  /** The frames of an answer, up to the one that closes it. Each carries the question's tag, if it had one. */
  async answer({ request_id }: Tagged = {}): Promise<Answer> {
    const chunks: string[] = [];
    for (;;) {
      const frame = await this.next();
      assert.ok(frame.type !== "status", JSON.stringify(frame));
      assert.equal(frame.request_id, request_id, JSON.stringify(frame));
      if (frame.type === "error") assert.fail(`${frame.code}: ${frame.message}`);
      if (frame.type === "event_end") return { text: chunks.join(""), tokens_used: frame.tokens_used, chunks };
      if (frame.type === "event_restart") chunks.splice(0);
      else chunks.push(frame.text);
    }
  }

  /** Asks and waits for the whole answer. */
  async say(text: string, tagged: Tagged = {}): Promise<Answer> {
    this.ask(text, tagged);
    return this.answer(tagged);
  }

  /** The frames up to the error that closes the answer. */
  async failure(): Promise<{ code: string; message: string; request_id: string | undefined; text: string }> {
    let text = "";
    for (;;) {
      const frame = await this.next();
      if (frame.type === "event_text_chunk") text += frame.text;
      else if (frame.type === "error")
        return { code: frame.code, message: frame.message, request_id: frame.request_id, text };
      else assert.fail(`not an error: ${JSON.stringify(frame)}`);
    }
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}
