import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import type { JsonObject } from "../../src/domain/json.ts";
import { ModelCall, type ReplyOptions } from "./model-call.ts";
import { WIRE_FORMATS, type WireFormatName, type WrittenTurn } from "./wire-formats.ts";

export type Answer = (call: ModelCall) => void | Promise<void>;

export const reply =
  (text: string, options: ReplyOptions = {}): Answer =>
  (call) =>
    call.reply(text, options);
/** Replies with reasoning, text and tool calls. */
export const turning =
  (turn: WrittenTurn): Answer =>
  (call) =>
    call.turn(turn);
/** Responds with an error status. */
export const failing =
  (status: number, ...rest: [body?: JsonObject | string, headers?: Record<string, string>]): Answer =>
  (call) =>
    call.fail(status, ...rest);

/**
 * A local model provider that speaks both wire formats of OpenAI, and those of Anthropic and Google. The test decides its
 * responses: call by call with `will`, or manually on the calls that `next` returns.
 */
export class ModelServer implements AsyncDisposable {
  /** Every call so far. */
  readonly calls: ModelCall[] = [];
  readonly #server: Server;
  #planned: Answer[] = [];
  #otherwise: Answer | null = null;
  #taken = 0;
  #wake = () => {};

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response));
  }

  static async open(): Promise<ModelServer> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ModelServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The responses to the next calls, one each; further calls are left to the test. */
  will(...answers: Answer[]): void {
    this.#planned.push(...answers);
  }

  /** The response to every call that has no planned one. */
  otherwise(answer: Answer | null): void {
    this.#otherwise = answer;
  }

  /** The next call that was not returned before. */
  async next(): Promise<ModelCall> {
    const index = this.#taken++;
    for (;;) {
      const call = this.calls[index];
      if (call) return call;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Forgets all calls and planned responses. */
  clear(): void {
    this.calls.length = 0;
    this.#taken = 0;
    this.#planned = [];
    this.#otherwise = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const format = (Object.keys(WIRE_FORMATS) as WireFormatName[]).find((name) =>
      request.url?.replace(/\?api-version=.*$/, "").endsWith(WIRE_FORMATS[name].path),
    );
    if (!format) {
      response.writeHead(404).end();
      return;
    }
    const call = new ModelCall(format, request.headers, (await json(request)) as JsonObject, response);
    this.calls.push(call);
    this.#wake();
    const answer = this.#planned.shift() ?? this.#otherwise;
    await answer?.(call);
  }
}
