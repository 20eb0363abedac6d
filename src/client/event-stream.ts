import { Backoff } from "../concurrency/backoff.ts";
import type { ErrorCode } from "../domain/errors.ts";
import { ClientError } from "./client-error.ts";
import { type SseBlock, SseParser } from "./sse-parser.ts";
import type { Query, Transport } from "./transport.ts";

export type FollowOptions = {
  /** Ends the iteration, without an error. */
  signal?: AbortSignal | undefined;
  /** A connection without data for this many milliseconds counts as lost; the server sends something every 15 s. Default 45 000. */
  silence_ms?: number;
  /** Also retries the first connection. By default an unreachable server is an error at first. */
  wait_for_server?: boolean;
  /** Called when the connection was lost or could not be made; it is retried. */
  on_disconnect?: (error: Error) => void;
};

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
const SILENCE_MS = 45_000;
const TOO_SLOW: ErrorCode = "reader_too_slow";

/**
 * A stream of server-sent events that survives its connections.
 *
 * CLIENT-1  It resumes after the last id it yielded, so that no row is lost, whatever happens to a connection.
 * CLIENT-2  A refusal (4xx) is thrown: asking again would not help. Anything else is retried with backoff for as long as the
 *           reader wants.
 * CLIENT-3  Leaving the iteration closes the connection.
 */
export class EventStream {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #options: FollowOptions;
  #last_event_id: string | null;

  constructor(transport: Transport, path: string, last_event_id: string | null, options: FollowOptions) {
    this.#transport = transport;
    this.#path = path;
    this.#options = options;
    this.#last_event_id = last_event_id;
  }

  async *events(query: Query = {}): AsyncGenerator<SseBlock & { data: string }, void, undefined> {
    const { signal, wait_for_server = false, on_disconnect } = this.#options;
    const backoff = new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
    let wasConnected = wait_for_server;
    const isLeaving = (): boolean => signal?.aborted ?? false;
    while (!isLeaving()) {
      try {
        for await (const block of this.#connection(this.#last_event_id === null ? query : {})) {
          if (isLeaving()) return;
          wasConnected = true;
          backoff.reset();
          if (block.id !== null) this.#last_event_id = block.id; // CLIENT-1
          // It says why the server ends the stream; the next connection continues.
          if (block.event === TOO_SLOW) continue;
          if (block.data !== null) yield { ...block, data: block.data };
        }
        on_disconnect?.(new Error("the server ended the stream"));
      } catch (error) {
        if (isLeaving()) return;
        if (!(error instanceof ClientError) || !isPassing(error) || !wasConnected) throw error; // CLIENT-2
        on_disconnect?.(error);
      }
      await backoff.wait(signal);
    }
  }

  async *#connection(query: Query): AsyncGenerator<SseBlock, void, undefined> {
    const { signal, silence_ms = SILENCE_MS } = this.#options;
    const leaving = new AbortController();
    const leave = (): void => leaving.abort();
    signal?.addEventListener("abort", leave, { once: true });
    const silence = new Silence(silence_ms, leave);
    const headers = {
      accept: "text/event-stream",
      ...(this.#last_event_id === null ? {} : { "last-event-id": this.#last_event_id }),
    };
    try {
      const response = await silence.during(this.#transport.open(this.#path, query, headers, leaving.signal));
      const reader = response.body?.getReader();
      if (!reader) return;
      const parser = new SseParser();
      const decoder = new TextDecoder();
      for (;;) {
        const { value, done } = await silence.during(reader.read());
        if (done) return;
        yield* parser.push(decoder.decode(value, { stream: true }));
      }
    } catch (error) {
      if (signal?.aborted || error instanceof ClientError) throw error;
      const what = leaving.signal.aborted ? `sent nothing for ${silence_ms} ms` : "broke off the stream";
      throw new ClientError("server_unreachable", `the server ${what}`, "it is retried", { cause: error });
    } finally {
      signal?.removeEventListener("abort", leave);
      leave(); // CLIENT-3
    }
  }
}

const isPassing = ({ status }: ClientError): boolean => status === null || status >= 500 || status === 429;

/** Only counts while the server's data is awaited: a reader may take its time. */
class Silence {
  readonly #ms: number;
  readonly #onSilence: () => void;

  constructor(ms: number, onSilence: () => void) {
    this.#ms = ms;
    this.#onSilence = onSilence;
  }

  async during<Value>(work: Promise<Value>): Promise<Value> {
    const timer = setTimeout(this.#onSilence, this.#ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }
}
