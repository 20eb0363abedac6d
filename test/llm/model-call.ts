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
  /** Token usage that the provider reports; null if it reports none. */
  usage?: Usage | null;
  finish?: FinishReason;
  /** Characters in each piece of a stream. All in one by default. */
  piece?: number;
  /** Milliseconds between two pieces. */
  every_ms?: number;
};

export const USAGE: Usage = { input: 120, output: 30 };

/** One model call as the provider sees it, to be answered well or badly. */
export class ModelCall {
  readonly format: WireFormatName;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
  /** When the caller disconnected before the response was complete, by `performance.now()`. */
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
    // Google has it in the URL.
    return this.format === "google" || this.body["stream"] === true;
  }

  /** The whole prompt, one message after another. */
  get prompt(): string {
    return this.#wire
      .messagesOf(this.body)
      .map(({ text }) => text)
      .join("\n\n");
  }

  /** The text of one role. */
  said(role: "system" | "user"): string {
    const messages = this.#wire.messagesOf(this.body).filter((message) => message.role === role);
    return messages.map(({ text }) => text).join("\n\n");
  }

  /** Sends the complete reply. */
  async reply(text: string, { usage = USAGE, finish = "stop", piece, every_ms = 0 }: ReplyOptions = {}): Promise<void> {
    if (!this.isStream) return this.#whole(text, usage, finish);
    this.begin(usage);
    for (const part of pieces(text, piece ?? text.length)) {
      this.say(part);
      if (every_ms > 0) await wait(every_ms);
    }
    this.end(usage, finish);
  }

  /** Sends a reply with reasoning, text and tool calls. */
  turn(turn: WrittenTurn): void {
    this.write(this.#wire.turn({ usage: USAGE, ...turn }));
    this.stop();
  }

  /** The tools offered to the model. */
  get tools(): { name: string; schema: JsonValue }[] {
    return this.#wire.toolsOf(this.body);
  }

  /** The tool results sent to the model. */
  get results(): { id: string; text: string }[] {
    return this.#wire.resultsOf(this.body);
  }

  /** The messages sent to the model, each with its role and text. */
  get messages(): ChatMessage[] {
    return this.#wire.messagesOf(this.body);
  }

  /** Sends an error within the stream. */
  tellError(): void {
    this.write(this.#wire.error);
    this.stop();
  }

  /** Sends the headers of a stream and the events before its first text. */
  begin(usage: Usage | null = USAGE): void {
    if (!this.#response.headersSent) this.write(this.#wire.begin(usage));
  }

  /** Sends raw bytes in a stream. */
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

  /** Ends the stream without a closing event. */
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

  /** Breaks the connection, like a provider that dies. */
  cut(): void {
    this.#response.socket?.resetAndDestroy();
  }

  #whole(text: string, usage: Usage | null, finish: FinishReason): void {
    this.#response.writeHead(200, { "content-type": "application/json" });
    this.#response.end(JSON.stringify(this.#wire.whole(text, usage, finish)));
  }
}

/** No provider splits a character. */
function* pieces(text: string, size: number): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const isPair = (text.codePointAt(from + size - 1) ?? 0) > 0xffff;
    const to = from + size + (isPair ? 1 : 0);
    yield text.slice(from, to);
    from = to;
  }
}
