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

/** Compares two secrets in constant time. */
export function sameSecret(candidate: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(candidate ?? ""), digest(expected)) && candidate !== undefined;
}

export const bearer = (headers: IncomingHttpHeaders): string | undefined =>
  /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];

/**
 * Without a token the server only serves this machine: a web page that makes the browser call it is recognized by its origin,
 * one that resolves its own name to a loopback address by the requested host.
 */
export function isFromThisMachine({ host, origin }: IncomingHttpHeaders): boolean {
  return isOnLoopback(`http://${host ?? ""}`) && (origin === undefined || isOnLoopback(origin));
}

function isOnLoopback(url: string): boolean {
  const parsed = parseUrl(url);
  return parsed !== null && isLoopback(parsed.hostname);
}
