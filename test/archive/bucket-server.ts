import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Stored = { body: Buffer; etag: string; modified: Date };

/**
 * The part of an S3-compatible server that LanceDB uses: objects in memory, range reads, lists, conditional writes, multipart
 * uploads, batch deletes. Signatures are ignored.
 */
export class BucketServer implements AsyncDisposable {
  readonly objects = new Map<string, Stored>();
  readonly #uploads = new Map<string, Map<number, Buffer>>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  /** Responds 503 to everything. */
  isDown = false;

  static async start(): Promise<BucketServer> {
    const bucket = new BucketServer();
    await new Promise<void>((resolve) => bucket.#server.listen(0, "127.0.0.1", resolve));
    return bucket;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The environment a program needs to reach it. */
  get environment(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL: this.url,
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_REGION: "us-east-1",
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = decoded(request, Buffer.concat(chunks));
    if (this.isDown) return void response.writeHead(503).end();
    const { pathname, searchParams: query } = new URL(request.url ?? "/", this.url);
    const key = decodeURIComponent(pathname).split("/").slice(2).join("/");
    const method = request.method ?? "GET";
    if (method === "GET" && key === "") return this.#list(query, response);
    if (method === "POST" && query.has("delete")) return this.#deleteMany(body, response);
    if (method === "POST" || (method === "PUT" && query.has("uploadId")))
      return this.#upload(method, key, query, body, response);
    if (method === "PUT") return this.#put(key, body, request, response);
    if (method === "DELETE") {
      this.objects.delete(key);
      return void response.writeHead(204).end();
    }
    this.#get(method, key, request, response);
  }

  #put(key: string, body: Buffer, request: IncomingMessage, response: ServerResponse): void {
    const source = request.headers["x-amz-copy-source"];
    if (request.headers["if-none-match"] === "*" && this.objects.has(key))
      return void response.writeHead(412).end(problem("PreconditionFailed"));
    const copied =
      typeof source === "string"
        ? this.objects.get(decodeURIComponent(source).split("/").slice(-key.split("/").length).join("/"))
        : null;
    const { etag } = this.#store(key, copied?.body ?? body);
    response.writeHead(200, { etag }).end();
  }

  #store(key: string, body: Buffer): Stored {
    const stored = { body, etag: `"${createHash("md5").update(body).digest("hex")}"`, modified: new Date() };
    this.objects.set(key, stored);
    return stored;
  }

  #get(method: string, key: string, request: IncomingMessage, response: ServerResponse): void {
    const stored = this.objects.get(key);
    if (!stored) return void response.writeHead(404).end(method === "HEAD" ? undefined : problem("NoSuchKey"));
    const { body, etag, modified } = stored;
    const headers = { etag, "last-modified": modified.toUTCString(), "accept-ranges": "bytes" };
    const [, from = "", to = ""] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    if (from === "" && to === "") {
      response.writeHead(200, { ...headers, "content-length": body.length });
      return void response.end(method === "HEAD" ? undefined : body);
    }
    const start = from === "" ? Math.max(0, body.length - Number(to)) : Number(from);
    const end = from === "" || to === "" ? body.length - 1 : Math.min(Number(to), body.length - 1);
    const range = `bytes ${start}-${end}/${body.length}`;
    response.writeHead(206, { ...headers, "content-range": range, "content-length": end - start + 1 });
    response.end(method === "HEAD" ? undefined : body.subarray(start, end + 1));
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const prefix = query.get("prefix") ?? "";
    const delimiter = query.get("delimiter");
    const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
    const folders = new Set<string>();
    const contents: string[] = [];
    for (const [key, { body, etag, modified }] of [...this.objects].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (!key.startsWith(prefix) || key <= after) continue;
      const end = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
      if (end >= 0) folders.add(key.slice(0, end + 1));
      else
        contents.push(
          `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${etag}</ETag><Size>${body.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`,
        );
    }
    const prefixes = [...folders].map((folder) => `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`);
    xml(
      response,
      `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}${prefixes.join("")}</ListBucketResult>`,
    );
  }

  #deleteMany(body: Buffer, response: ServerResponse): void {
    const keys = [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key as string);
    for (const key of keys) this.objects.delete(key);
    xml(response, `<DeleteResult>${keys.map((key) => `<Deleted><Key>${key}</Key></Deleted>`).join("")}</DeleteResult>`);
  }

  #upload(method: string, key: string, query: URLSearchParams, body: Buffer, response: ServerResponse): void {
    const id = query.get("uploadId") ?? randomUUID();
    const parts = this.#uploads.get(id) ?? new Map<number, Buffer>();
    this.#uploads.set(id, parts);
    if (query.has("uploads"))
      return xml(response, `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
    if (method === "PUT") {
      parts.set(Number(query.get("partNumber")), body);
      return void response.writeHead(200, { etag: `"${id}-${query.get("partNumber")}"` }).end();
    }
    const whole = Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part));
    const { etag } = this.#store(key, whole);
    this.#uploads.delete(id);
    xml(
      response,
      `<CompleteMultipartUploadResult><Key>${key}</Key><ETag>${etag}</ETag></CompleteMultipartUploadResult>`,
    );
  }
}

const problem = (code: string): string => `<Error><Code>${code}</Code><Message>${code}</Message></Error>`;
const xml = (response: ServerResponse, text: string): void =>
  void response.writeHead(200, { "content-type": "application/xml" }).end(`<?xml version="1.0"?>${text}`);

/** Some clients send a body in signed chunks. */
function decoded(request: IncomingMessage, body: Buffer): Buffer {
  if (!String(request.headers["content-encoding"]).includes("aws-chunked")) return body;
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.subarray(at, end).toString(), 16);
    if (!size) break;
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
