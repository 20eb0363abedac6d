import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { TurnBatch } from "../concurrency/turn-batch.ts";
import { ReaderBudget, readerTooSlow } from "../store/follow.ts";
import { drained, type Reader, SlowReaders } from "./slow-readers.ts";

const HEARTBEAT_MS = 15_000;
/** How long a client gets to read why it is dropped, in milliseconds. */
const DROP_GRACE_MS = 5000;

/** One server-sent event. `data` is text without newlines, such as JSON, or a function that makes it. */
export type ServerSentEvent = { event?: string; data: string | (() => string); id?: string };

/**
 * The open streams of server-sent events.
 *
 * STREAM-1  A client that does not read is dropped, and buffering for it is bounded: `send` waits until it has read most of
 *           what was sent, and events that wait meanwhile count towards its budget.
 * STREAM-2  Every stream ends with the server.
 * STREAM-3  Events are encoded and written in the turn of the event loop after the one in which they happened: a session makes its
 *           next call before its readers are served.
 */
export class EventStreams {
  readonly #slowReaders: SlowReaders;
  readonly #open = new Set<EventStream>();
  readonly #heartbeats: NodeJS.Timeout;

  constructor(stall_ms: number) {
    this.#slowReaders = new SlowReaders(stall_ms);
    this.#heartbeats = setInterval(() => {
      for (const stream of this.#open) stream.beat();
    }, HEARTBEAT_MS).unref();
  }

  /** Answers a request with a stream. */
  open(response: ServerResponse, headers: OutgoingHttpHeaders): EventStream {
    const stream = new EventStream(response, headers, () => this.#slowReaders.drop(stream.reader));
    this.#open.add(stream);
    this.#slowReaders.watch(stream.reader);
    stream.gone.addEventListener(
      "abort",
      () => {
        this.#open.delete(stream);
        this.#slowReaders.unwatch(stream.reader);
      },
      { once: true },
    );
    return stream;
  }

  stop(): void {
    clearInterval(this.#heartbeats);
    this.#slowReaders.stop();
    for (const stream of this.#open) stream.end();
  }
}

export class EventStream {
  readonly reader: Reader;
  readonly budget: ReaderBudget;
  readonly #response: ServerResponse;
  readonly #gone = new AbortController();
  readonly #waiting = new TurnBatch<ServerSentEvent>((events) => this.#writeAll(events));

  constructor(response: ServerResponse, headers: OutgoingHttpHeaders, tooSlow: () => void) {
    this.#response = response;
    this.budget = new ReaderBudget(tooSlow);
    this.reader = readerOf(response);
    response.once("close", () => this.#gone.abort());
    response.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // A buffering proxy would hold events back.
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
    if (response.destroyed) this.#gone.abort();
  }

  /** Aborts when the client has left or was dropped, or the stream ended. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves when the client has room for more, or is gone. */
  async send(event: ServerSentEvent): Promise<void> {
    await drained(this.reader, this.gone);
    this.#waiting.add(event); // STREAM-3
  }

  /** Sends the reconnect delay and the cursor, before the first event. */
  begin(id?: string): void {
    this.#write(`retry: 1000\n${id === undefined ? "" : `id: ${id}\n`}\n`);
  }

  /** A comment as a heartbeat, so that no proxy takes the connection for dead. */
  beat(): void {
    if (this.reader.buffered() === 0) this.#write(": \n\n");
  }

  end(): void {
    this.#waiting.flush();
    this.#gone.abort();
    this.#response.end();
  }

  #writeAll(events: readonly ServerSentEvent[]): void {
    if (this.gone.aborted) return;
    try {
      this.#write(events.map(encode).join(""));
    } catch (error) {
      // Too long for a text. The client learns that its stream broke; nothing else may break with it.
      this.#response.destroy(error as Error);
    }
  }

  #write(text: string): void {
    if (!this.gone.aborted && this.#response.writable) this.#response.write(text);
  }
}

function encode({ event, data, id }: ServerSentEvent): string {
  const text = typeof data === "function" ? data() : data;
  return `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}data: ${text}\n\n`;
}

function readerOf(response: ServerResponse): Reader {
  const { socket } = response;
  return {
    buffered: () => (response.destroyed ? 0 : response.writableLength),
    delivered: () => (socket ? socket.bytesWritten - socket.writableLength : 0),
    drop(reason) {
      const { code } = readerTooSlow();
      response.end(encode({ event: code, data: JSON.stringify({ code, message: reason }) }));
      setTimeout(() => response.destroy(), DROP_GRACE_MS);
    },
  };
}
