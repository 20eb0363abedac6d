import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import {
  type ChatMessage,
  type FinishReason,
  type Usage,
  WIRE_FORMATS,
  type WireFormat,
  type WireFormatName,
  type WrittenTurn,
} from "./wire-formats.ts";

export type ReplyOptions = {
  /** Tokens that the provider reports; null for one that reports none. */
  usage?: Usage | null;
  finish?: FinishReason;
  /** Characters in each piece of a stream. All in one by default. */
  piece?: number;
  /** Milliseconds between two pieces. */
  every_ms?: number;
};

export const USAGE: Usage = { input: 120, output: 30 };

/** One call of the model as the provider sees it, to be answered well or badly. */
export class ModelCall {
  readonly format: WireFormatName;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
  /** When the caller went away before the answer was over, by `performance.now()`. */
  readonly left: Promise<number>;
  readonly #wire: WireFormat;
  readonly #response: ServerResponse;

  constructor(format: WireFormatName, headers: IncomingHttpHeaders, body: JsonObject, response: ServerResponse) {
    this.format = format;
    this.headers = headers;
    this.body = body;
    this.#wire = WIRE_FORMATS[format];
    this.#response = response;
    this.left = new Promise((resolve) => {
      response.once("close", () => {
        if (!response.writableFinished) resolve(performance.now());
      });
    });
  }

  get isOver(): boolean {
    return this.#response.closed || this.#response.writableEnded;
  }

  get key(): string | null {
    return this.#wire.keyOf(this.headers);
  }

  get isStream(): boolean {
    // Google says it in the address.
    return this.format === "google" || this.body["stream"] === true;
  }

  /** All that the model was told, one message after the other. */
  get prompt(): string {
    return this.#wire
      .messagesOf(this.body)
      .map(({ text }) => text)
      .join("\n\n");
  }

  /** What was said in one role. */
  said(role: "system" | "user"): string {
    const messages = this.#wire.messagesOf(this.body).filter((message) => message.role === role);
    return messages.map(({ text }) => text).join("\n\n");
  }

  /** Answers the whole reply. */
  async reply(text: string, { usage = USAGE, finish = "stop", piece, every_ms = 0 }: ReplyOptions = {}): Promise<void> {
    if (!this.isStream) return this.#whole(text, usage, finish);
    this.begin(usage);
    for (const part of pieces(text, piece ?? text.length)) {
      this.say(part);
      if (every_ms > 0) await wait(every_ms);
    }
    this.end(usage, finish);
  }

  /** Answers with thoughts, text and calls of tools. */
  turn(turn: WrittenTurn): void {
    this.write(this.#wire.turn({ usage: USAGE, ...turn }));
    this.stop();
  }

  /** The tools that the model was told of. */
  get tools(): { name: string; schema: JsonValue }[] {
    return this.#wire.toolsOf(this.body);
  }

  /** The results of tools that it was told. */
  get results(): { id: string; text: string }[] {
    return this.#wire.resultsOf(this.body);
  }

  /** Every message as it was told: who said it, and what. */
  get messages(): ChatMessage[] {
    return this.#wire.messagesOf(this.body);
  }

  /** Says in the stream that something went wrong. */
  tellError(): void {
    this.write(this.#wire.error);
    this.stop();
  }

  /** Sends the head of a stream and what comes before its first text. */
  begin(usage: Usage | null = USAGE): void {
    if (!this.#response.headersSent) this.write(this.#wire.begin(usage));
  }

  /** Sends bytes of a stream that are none of the pieces above. */
  write(bytes: string | Buffer): void {
    if (!this.#response.headersSent) this.head();
    this.#response.write(bytes);
  }

  head(): void {
    this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    this.#response.flushHeaders();
  }

  /** Sends one piece of a stream. */
  say(text: string): void {
    this.begin();
    this.#response.write(this.#wire.piece(text));
  }

  /** Ends the stream without a word about its end. */
  stop(): void {
    this.#response.end();
  }

  end(usage: Usage | null = USAGE, finish: FinishReason = "stop"): void {
    this.#response.end(this.#wire.end(usage, finish));
  }

  fail(status: number, body: JsonObject | string = { error: { message: "no" } }, headers: Record<string, string> = {}) {
    this.#response.writeHead(status, { "content-type": "application/json", ...headers });
    this.#response.end(typeof body === "string" ? body : JSON.stringify(body));
  }

  /** Ends the connection as a provider that dies does. */
  cut(): void {
    this.#response.socket?.resetAndDestroy();
  }

  #whole(text: string, usage: Usage | null, finish: FinishReason): void {
    this.#response.writeHead(200, { "content-type": "application/json" });
    this.#response.end(JSON.stringify(this.#wire.whole(text, usage, finish)));
  }
}

/** No provider cuts a character in two. */
function* pieces(text: string, size: number): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const isPair = (text.codePointAt(from + size - 1) ?? 0) > 0xffff;
    const to = from + size + (isPair ? 1 : 0);
    yield text.slice(from, to);
    from = to;
  }
}
