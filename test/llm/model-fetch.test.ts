import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { modelFetch } from "../../src/monikers/llm/model-fetch.ts";

const LARGE = "ж".repeat(300_000);

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const post = (url: string, more: RequestInit = {}): Promise<Response> =>
  modelFetch(url, { method: "POST", body: LARGE, headers: { authorization: "Bearer key" }, ...more });

describe("a request to a model", () => {
  test("arrives whole with its headers, and the answer is told as it comes", async () => {
    let came = "";
    const goOn = Promise.withResolvers<void>();
    await using server = await serve(async (request, response) => {
      came = `${request.method} ${request.headers.authorization} ${await text(request)}`;
      response.writeHead(200, { "content-type": "text/event-stream", "x-two": ["a", "b"] });
      response.write("first");
      await goOn.promise;
      response.end("last");
    });
    const response = await post(server.url);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-two"), "a, b");
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await reader.read()).value, "first");
    goOn.resolve();
    assert.equal((await reader.read()).value, "last");
    assert.equal((await reader.read()).done, true);
    assert.equal(came, `POST Bearer key ${LARGE}`);
  });

  test("goes over the connection of the one before, unless that was idle for long", async () => {
    const ports: (number | undefined)[] = [];
    await using server = await serve(async (request, response) => {
      ports.push(request.socket.remotePort);
      await text(request);
      response.end("good");
    });
    const ask = async (): Promise<void> => void (await (await post(server.url)).text());
    await ask();
    await ask();
    await setTimeout(4500);
    await ask();
    assert.equal(ports[0], ports[1]);
    assert.notEqual(ports[1], ports[2]);
  });

  test("reports the status and text of a refusal that arrives before it was read", async () => {
    await using server = await serve((_, response) => {
      response.writeHead(413, { connection: "close" }).end("too long");
    });
    const response = await post(server.url);
    assert.equal(response.status, 413);
    assert.equal(await response.text(), "too long");
  });

  test("goes where it is redirected", async () => {
    await using server = await serve(async (request, response) => {
      const body = await text(request);
      if (request.url === "/") response.writeHead(307, { location: "/there" }).end();
      else response.end(`${request.url} ${body.length}`);
    });
    assert.equal(await (await post(server.url)).text(), `/there ${LARGE.length}`);
  });

  test("fails with its cause where nobody listens, and where the answer is cut", async () => {
    const gone = await serve(() => {});
    await gone[Symbol.asyncDispose]();
    await assert.rejects(post(gone.url), (error: Error) => (error.cause as { code?: string }).code === "ECONNREFUSED");
    await using server = await serve((_, response) => {
      response.write("half", () => response.destroy());
    });
    await assert.rejects(async () => (await post(server.url)).text());
  });

  test("ends with the caller's reason when it is aborted, before an answer and in the middle of one", async () => {
    const reason = new Error("enough");
    const caller = new AbortController();
    await using silent = await serve(() => caller.abort(reason));
    await assert.rejects(post(silent.url, { signal: caller.signal }), reason);
    const later = new AbortController();
    await using halting = await serve((_, response) => void response.write("half"));
    const response = await post(halting.url, { signal: later.signal });
    const reading = response.text();
    later.abort(reason);
    await assert.rejects(reading);
  });
});
