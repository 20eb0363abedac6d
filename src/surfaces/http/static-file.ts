import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

const compress = promisify(gzip);

/** A file as it is sent: compressed once, with a digest of its content. */
export type StaticFile = { type: string; body: Buffer; gzipped: Buffer; tag: string };

export async function staticFile(type: string, body: Buffer): Promise<StaticFile> {
  const tag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  return { type, body, gzipped: await compress(body), tag };
}

type FileAnswer = { status: number; headers: Record<string, string>; body: Buffer | undefined };

export function answerWith(file: StaticFile, requestHeaders: IncomingHttpHeaders, cache: string): FileAnswer {
  const headers = { "content-type": file.type, etag: file.tag, vary: "accept-encoding", "cache-control": cache };
  if (requestHeaders["if-none-match"] === file.tag) return { status: 304, headers, body: undefined };
  if (!/\bgzip\b/.test(requestHeaders["accept-encoding"] ?? "")) return { status: 200, headers, body: file.body };
  return { status: 200, headers: { ...headers, "content-encoding": "gzip" }, body: file.gzipped };
}
