import { once } from "node:events";
import { type AgentOptions, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";

/**
 * How long a connection is kept for the next request, in milliseconds. One that was idle for longer may be gone without a word, and
 * a request sent over it would wait for an answer that never comes.
 */
const IDLE_MS = 4000;
const CONNECTIONS: AgentOptions = {
  keepAlive: true,
  timeout: IDLE_MS,
  // As `fetch` does.
  ...(process.env["NODE_USE_ENV_PROXY"] === "1" && { proxyEnv: process.env }),
};
const plain = { request: httpRequest, agent: new HttpAgent(CONNECTIONS) };
const secure = { request: httpsRequest, agent: new HttpsAgent(CONNECTIONS) };

/**
 * `fetch` for model requests. A conversation is sent whole in every turn, and the built-in `fetch` copies it several times into
 * memory outside the heap that is garbage at once; collecting it dominates the cost of a turn. A text is therefore written to the
 * connection directly. Redirects are left to `fetch`.
 */
export const modelFetch: typeof fetch = async (input, init = {}) => {
  const { body, method = "GET", headers, signal } = init;
  if (typeof body !== "string" || input instanceof Request) return fetch(input, init);
  const url = new URL(input);
  const { request, agent } = url.protocol === "https:" ? secure : plain;
  try {
    const sent = request(url, {
      agent,
      method,
      headers: { ...Object.fromEntries(new Headers(headers)), "content-length": Buffer.byteLength(body) },
      ...(signal && { signal }),
    });
    // Errors before the response are thrown below, later ones by the response stream; without a listener they would end the
    // process.
    sent.on("error", () => {});
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    const { statusCode: status = 0, statusMessage: statusText = "" } = answer;
    if (status >= 300 && status < 400) {
      answer.destroy();
      return fetch(input, init);
    }
    const stream = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
    return new Response(stream, { status, statusText, headers: headersOf(answer) });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new TypeError("fetch failed", { cause: error });
  }
};

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}
