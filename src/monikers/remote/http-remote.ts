import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import { newId } from "../../domain/ids.ts";
import { redactUrl } from "../../domain/redact.ts";
import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { RequestSigner } from "../../signing/request-signer.ts";
import { type StepContext, StepError } from "../moniker.ts";
import type { Buffered } from "./bounded-lines.ts";
import { type Descriptions, readDescriptions } from "./description.ts";
import { type Remote, stepRequest } from "./remote.ts";
import { remoteGone, remoteMisbehaved } from "./remote-errors.ts";
import { requestId } from "./request-id.ts";
import { StepAnswer } from "./step-answer.ts";

/** Idle connections are closed after this many milliseconds, before the worker closes them while a request is on its way. */
const IDLE_MS = 4000;
/** A worker that refuses connections is retried within the step for this long, in milliseconds: it may be restarting. */
const RECONNECT_MS = 2000;
const RECONNECT_EVERY_MS = 50;
/** How long an answer may take to end after its frame, in milliseconds. */
const END_MS = 2000;
const LARGEST_DESCRIPTION = 4 * 1024 * 1024;

/** Errors that show that nothing of the request was received. */
const UNREACHABLE = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ENOENT"]);

type Exchange = {
  method: "GET" | "POST";
  id: string;
  body: string;
  signal: AbortSignal;
  traceparent?: string | undefined;
};

/**
 * A worker reached over HTTP.
 *
 * HTTP-1  Connections are kept alive and send at once (no Nagle): a step costs one exchange.
 * HTTP-2  A request that may have reached the worker is never sent again here: whether a step may run twice is up to the
 *         runner.
 * HTTP-3  When the step's signal aborts, the connection is closed; that cancels the step at the worker.
 */
export class HttpRemote implements Remote {
  readonly name: string;
  readonly #url: URL;
  readonly #signer: RequestSigner;
  readonly #agent: HttpAgent;
  readonly #buffered: Buffered = { bytes: 0 };

  constructor(url: string, secret: string | undefined) {
    this.#url = new URL(url);
    this.name = redactUrl(url);
    this.#signer = new RequestSigner(secret === undefined ? [] : [secret]);
    const options = { keepAlive: true, noDelay: true, timeout: IDLE_MS, scheduling: "lifo" } as const; // HTTP-1
    this.#agent = this.#url.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
  }

  async describe(signal: AbortSignal): Promise<Descriptions> {
    const response = await this.#exchange({ method: "GET", id: `describe/${newId()}`, body: "", signal });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.#chunks(response)) {
      bytes += chunk.length;
      if (bytes > LARGEST_DESCRIPTION)
        throw remoteMisbehaved(this.name, `described its monikers in more than ${LARGEST_DESCRIPTION} bytes`);
      chunks.push(chunk);
    }
    return readDescriptions(this.name, Buffer.concat(chunks).toString());
  }

  async run(moniker: string, frame: FrameIn, context: StepContext): Promise<FrameOut> {
    const { signal, emit, traceparent } = context;
    const body = stepRequest(moniker, frame, context);
    const response = await this.#reconnecting({ method: "POST", id: requestId(context), body, signal, traceparent });
    const answer = new StepAnswer(this.name, emit, this.#buffered);
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    try {
      for await (const chunk of this.#chunks(response)) {
        answer.push(chunk);
        if (!answer.isWhole || timer) continue;
        timer = setTimeout(() => {
          isLate = true;
          response.destroy();
        }, END_MS);
      }
      return answer.finish();
    } catch (error) {
      throw isLate ? remoteMisbehaved(this.name, "did not end its answer after the frame") : error;
    } finally {
      clearTimeout(timer);
      answer.drop();
      // The rest of an unwanted answer is not read.
      if (!response.complete) response.destroy();
    }
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
  }

  async #reconnecting(exchange: Exchange): Promise<IncomingMessage> {
    const until = performance.now() + RECONNECT_MS;
    for (;;) {
      try {
        return await this.#exchange(exchange);
      } catch (error) {
        const isRefused =
          error instanceof StepError && (error.cause as { code?: unknown } | undefined)?.code === "ECONNREFUSED";
        if (!isRefused || performance.now() > until) throw error;
      }
      await wait(RECONNECT_EVERY_MS, undefined, { signal: exchange.signal });
    }
  }

  /** HTTP-2. A response with status 200. */
  async #exchange({ method, id, body, signal, traceparent }: Exchange): Promise<IncomingMessage> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = this.#request({
        method,
        agent: this.#agent,
        signal, // HTTP-3
        headers: {
          accept: method === "GET" ? "application/json" : "application/x-ndjson",
          ...(method === "POST" && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...this.#signer.headers(id, body),
          ...(traceparent && { traceparent }),
        },
      });
      request.once("response", resolve);
      request.on("error", (error) => reject(this.#failure(error)));
      request.end(body);
    });
    // From here on the reader of the response gets its errors.
    response.on("error", () => {});
    if (response.statusCode === 200) return response;
    response.destroy();
    throw this.#refusal(response);
  }

  #request(options: Parameters<typeof httpRequest>[1]): ClientRequest {
    const request = this.#url.protocol === "https:" ? httpsRequest : httpRequest;
    return request(this.#url, options ?? {});
  }

  async *#chunks(response: IncomingMessage): AsyncGenerator<Buffer> {
    try {
      yield* response as AsyncIterable<Buffer>;
    } catch (error) {
      throw this.#failure(error as NodeJS.ErrnoException);
    }
  }

  #failure(error: NodeJS.ErrnoException): Error {
    const { code = "", message } = error;
    if (code === "ABORT_ERR") return error;
    if (code.startsWith("HPE_"))
      return remoteMisbehaved(this.name, `does not speak HTTP (${message})`, { cause: error });
    if (UNREACHABLE.has(code))
      return remoteGone(this.name, `cannot be reached (${code})`, { outage: true, cause: error });
    return remoteGone(this.name, `disconnected (${code === "" ? message : code})`, { cause: error });
  }

  #refusal({ statusCode: status = 0, headers }: IncomingMessage): StepError {
    if (status === 401 || status === 403)
      return remoteMisbehaved(
        this.name,
        `refuses the request (${status}): check that EVERSTEP_REMOTE_SECRET is the same there`,
      );
    const isBusy = status === 429 || status === 502 || status === 503 || status === 504;
    if (!isBusy) return remoteMisbehaved(this.name, `answered ${status}`);
    const seconds = Number(headers["retry-after"]);
    const retry_after_ms = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3600) * 1000 : undefined;
    return remoteGone(this.name, `answered ${status}`, { outage: true, retry_after_ms });
  }
}
