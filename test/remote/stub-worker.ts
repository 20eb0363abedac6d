import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { text as textOf } from "node:stream/consumers";
import type { JsonObject } from "../../src/domain/json.ts";

export type StepRequest = {
  moniker: string;
  frame: { step: string; state: JsonObject; guidance?: unknown[] };
  context: {
    params: JsonObject;
    ids: { session_id: string; iteration: number };
    attempt: { number: number; after: string | null };
    deadline: string | null;
  };
};
export type Received = { method: string; headers: IncomingHttpHeaders; text: string };
type Answer = (request: StepRequest, response: ServerResponse, received: Received) => void | Promise<void>;

/** A worker over HTTP whose responses the test controls, down to the bytes. */
export class StubWorker implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Sockets on which steps arrived. */
  readonly sockets = new Set<unknown>();
  monikers: unknown;
  answer: Answer;
  #server: Server | undefined;
  #port = 0;

  constructor(monikers: unknown, answer: Answer) {
    this.monikers = monikers;
    this.answer = answer;
  }

  static async start(monikers: unknown, answer: Answer, port = 0): Promise<StubWorker> {
    const worker = new StubWorker(monikers, answer);
    await worker.listen(port);
    return worker;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async listen(port = this.#port): Promise<void> {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as { port: number }).port;
  }

  /** Like a killed process: stops listening and cuts every connection. */
  async kill(): Promise<void> {
    if (!this.#server) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const received = { method, headers, text: await textOf(request) };
    this.received.push(received);
    response.on("error", () => {});
    if (method === "GET") return void response.end(JSON.stringify({ monikers: this.monikers }));
    this.sockets.add(request.socket);
    await this.answer(JSON.parse(received.text) as StepRequest, response, received);
  }
}

/** Ends a step successfully, with the number of steps so far as its text. */
export const counted = ({ frame: { step, state } }: StepRequest, done = false): string => {
  const n = typeof state["n"] === "number" ? state["n"] + 1 : 0;
  return `${JSON.stringify({ frame: { step, next_step: String(n + 1), state: { n }, text: String(n), done } })}\n`;
};
