import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { parseUrl } from "./parse-url.ts";

export type AccessRules = { token: string | undefined; metrics_token: string | undefined };

export const isLoopback = (host: string): boolean =>
  host === "localhost" ||
  host.endsWith(".localhost") ||
  host === "[::1]" ||
  host === "::1" ||
  /^127(\.\d{1,3}){3}$/.test(host);

/** Whether two secrets are the same, in a time that tells nothing about either. */
export function sameSecret(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given ?? ""), digest(expected)) && given !== undefined;
}

export const bearer = (headers: IncomingHttpHeaders): string | undefined =>
  /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];

/**
 * Without a token the server is for this machine alone: a page on the web that makes the browser call it is told apart by
 * its origin, one that renames itself to a loopback address by the host it asked for.
 */
export function isFromThisMachine({ host, origin }: IncomingHttpHeaders): boolean {
  return isOnLoopback(`http://${host ?? ""}`) && (origin === undefined || isOnLoopback(origin));
}

function isOnLoopback(url: string): boolean {
  const parsed = parseUrl(url);
  return parsed !== null && isLoopback(parsed.hostname);
}
