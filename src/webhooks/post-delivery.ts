import dns from "node:dns";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { VERSION } from "../domain/version.ts";
import { addressRefused, type DeliveryAddresses, hostOf } from "./delivery-addresses.ts";

/** How an attempt ended. `response_status` is null if there was no response, `error` if the receiver accepted the delivery. */
export type PostOutcome = { response_status: number | null; error: string | null; retry_after_s: number | null };

export type Post = {
  url: string;
  body: string;
  headers: Record<string, string>;
  /** Time limit from connecting to the end of the response, in milliseconds. */
  timeout_ms: number;
  /** Aborts the attempt. */
  signal: AbortSignal;
};

/** The most bytes read of a response; only its status matters. */
const MOST_READ = 64 * 1024;
const LONGEST_ERROR = 500;
const USER_AGENT = `Everstep/${VERSION}`;

/** Posts once. A redirect is a failure: it could lead to a refused address. */
export function postDelivery({ url, body, headers, timeout_ms, signal }: Post, addresses: DeliveryAddresses) {
  return new Promise<PostOutcome>((resolve) => {
    const target = new URL(url);
    const host = hostOf(target);
    // A literal address is connected to without a lookup.
    if (isIP(host) !== 0 && !addresses.mayConnect(host, host)) return resolve(failed(addressRefused(host, [host])));
    const limit = AbortSignal.timeout(timeout_ms);
    const send = target.protocol === "https:" ? requestHttps : requestHttp;
    const request = send(target, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "content-length": Buffer.byteLength(body),
        ...headers,
      },
      // Each attempt opens its own connection and resolves the name again.
      agent: false,
      lookup: checkedLookup(addresses),
      signal: AbortSignal.any([signal, limit]),
    });
    // Once the status has arrived, the outcome is known, whatever happens to the rest.
    let answered: PostOutcome | null = null;
    request.on("error", (error) => {
      const cause = limit.aborted ? new Error(`no response within ${timeout_ms / 1000} s`) : error;
      resolve(answered ?? failed(cause));
    });
    request.on("response", (response) => {
      const outcome = outcomeOf(response.statusCode ?? 0, response.headers["retry-after"]);
      answered = outcome;
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_READ) response.destroy();
      });
      response.on("error", () => resolve(outcome));
      response.on("close", () => resolve(outcome));
    });
    request.end(body);
  });
}

/** ADDRESSES-1: passes only allowed addresses to the socket. */
function checkedLookup(addresses: DeliveryAddresses): LookupFunction {
  return (host, options, callback) => {
    dns.lookup(host, { ...options, all: true }, (error, resolved) => {
      if (error) return callback(error, "");
      const allowed = resolved.filter(({ address }) => addresses.mayConnect(host, address));
      const [first] = allowed;
      if (!first) {
        const refused = resolved.map(({ address }) => address);
        return callback(addressRefused(host, refused), "");
      }
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function outcomeOf(response_status: number, retryAfter: string | undefined): PostOutcome {
  const isAccepted = response_status >= 200 && response_status < 300;
  const why = response_status >= 300 && response_status < 400 ? "; redirects are not followed" : "";
  const seconds = Number(retryAfter);
  return {
    response_status,
    error: isAccepted ? null : `the receiver answered ${response_status}${why}`,
    retry_after_s: !isAccepted && retryAfter !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : null,
  };
}

const failed = (error: Error): PostOutcome => ({
  response_status: null,
  error: messageOf(error).slice(0, LONGEST_ERROR).toWellFormed(),
  retry_after_s: null,
});

/** If several addresses were tried, the error has no message of its own. */
const messageOf = (error: Error): string =>
  error instanceof AggregateError ? error.errors.map((one) => (one as Error).message).join("; ") : error.message;
