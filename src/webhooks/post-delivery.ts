import dns from "node:dns";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { VERSION } from "../domain/version.ts";
import { addressRefused, type DeliveryAddresses, hostOf } from "./delivery-addresses.ts";

/** How an attempt ended. `response_status` is null where nobody answered, `error` where the receiver took the delivery. */
export type PostOutcome = { response_status: number | null; error: string | null; retry_after_s: number | null };

export type Post = {
  url: string;
  body: string;
  headers: Record<string, string>;
  /** Milliseconds from the first try to connect to the end of the answer. */
  timeout_ms: number;
  /** Ends the attempt at once. */
  signal: AbortSignal;
};

/** Bytes of an answer that are read; only its status counts. */
const MOST_READ = 64 * 1024;
const LONGEST_ERROR = 500;
const USER_AGENT = `Everstep/${VERSION}`;

/** Posts once. A redirect is a failure: whoever could redirect could reach what may not be reached. */
export function postDelivery({ url, body, headers, timeout_ms, signal }: Post, addresses: DeliveryAddresses) {
  return new Promise<PostOutcome>((resolve) => {
    const target = new URL(url);
    const host = hostOf(target);
    // A host that is an address is connected to without a lookup.
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
      // Each attempt makes its own connection, and so asks for the address.
      agent: false,
      lookup: checkedLookup(addresses),
      signal: AbortSignal.any([signal, limit]),
    });
    // Once its status has arrived the receiver has answered, however the answer goes on.
    let answered: PostOutcome | null = null;
    request.on("error", (error) => {
      const cause = limit.aborted ? new Error(`there was no answer within ${timeout_ms / 1000} s`) : error;
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

/** ADDRESSES-1: gives to the socket only addresses that may be connected to. */
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
  const isTaken = response_status >= 200 && response_status < 300;
  const why = response_status >= 300 && response_status < 400 ? ", and redirects are not followed" : "";
  const seconds = Number(retryAfter);
  return {
    response_status,
    error: isTaken ? null : `the receiver answered ${response_status}${why}`,
    retry_after_s: !isTaken && retryAfter !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : null,
  };
}

const failed = (error: Error): PostOutcome => ({
  response_status: null,
  error: messageOf(error).slice(0, LONGEST_ERROR).toWellFormed(),
  retry_after_s: null,
});

/** Where several addresses were tried, the error has no words of its own. */
const messageOf = (error: Error): string =>
  error instanceof AggregateError ? error.errors.map((one) => (one as Error).message).join("; ") : error.message;
