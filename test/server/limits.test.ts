import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { RawClient } from "../agent-ws/raw-client.ts";
import { fillUp, makeSpace } from "../store/full-disk.ts";
import { mayMount, mountMemory } from "../store/mounts.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api, problemOf } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";

const TOKEN = "a-secret-that-nobody-guesses";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const connectTo = ({ url }: ServerProcess): Socket => {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => {});
};

describe("a server", { concurrency: true }, () => {
  test("answers a request for another protocol as HTTP/1.1", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const socket = connectTo(server);
    const head = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings, close\r\n";
    socket.write(`${head}Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n`);
    const answer = await text(socket);
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(answer, /"status":"ok"/);
  });

  test(
    "takes a limited number of connections from one address, and others again when some have closed",
    TIMEOUT,
    async () => {
      await using server = await ServerProcess.start({ EVERSTEP_MAX_CONNECTIONS_PER_ADDRESS: "5" });
      const open = Array.from({ length: 5 }, () => connectTo(server));
      await Promise.all(open.map((socket) => once(socket, "connect")));
      const sixth = connectTo(server);
      await once(sixth, "close");
      for (const socket of open) socket.destroy();
      await eventually("room", async () => {
        const answer = await fetch(`${server.url}/health`).catch(() => null);
        return answer?.status === 200;
      });
    },
  );

  test("takes a limited number of connections in total", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_MAX_CONNECTIONS: "3" });
    const open = Array.from({ length: 3 }, () => connectTo(server));
    await Promise.all(open.map((socket) => once(socket, "connect")));
    const fourth = connectTo(server);
    await once(fourth, "close");
    for (const socket of open) socket.destroy();
  });

  test("drops clients that send nothing, or their headers or body too slowly", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const started = performance.now();
    const slow = [
      "",
      "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nx-slow",
      "POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{",
    ].map(async (start) => {
      const socket = connectTo(server);
      socket.write(start);
      const drip = setInterval(() => socket.write(start === "" ? "" : "x"), 2000);
      const answer = await text(socket);
      clearInterval(drip);
      assert.match(answer, /^(HTTP\/1\.1 408 |$)/);
      return performance.now() - started;
    });
    const [nothing = 0, headers = 0, body = 0] = await Promise.all(slow);
    assert.ok(nothing < 25_000 && headers < 25_000 && body < 45_000, [nothing, headers, body].join());
  });
});

describe("wrong tokens", { concurrency: true }, () => {
  test("of one address are answered 429 after a number of them, over HTTP and sockets alike", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_WRONG_TOKENS: "5" });
    for (let guess = 0; guess < 5; guess += 1)
      problemOf(await new Api(server.url, bearer(`guess ${guess}`)).get("/api/agents"), 401);
    // Otherwise the right token could be recognized.
    for (const token of ["another", TOKEN]) problemOf(await new Api(server.url, bearer(token)).get("/api/agents"), 429);
    await assert.rejects(Watcher.connect(server.url, { auth: { token: TOKEN } }), /too many wrong tokens/);
    await assert.rejects(RawClient.open(server.url, { headers: bearer(TOKEN) }), /429/);
    problemOf(await new Api(server.url).get("/api/agents"), 401);
    assert.equal((await new Api(server.url).get("/health")).status, 200);
  });

  test("do not lock out an address that has sent the right one", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_WRONG_TOKENS: "5" });
    const api = new Api(server.url, bearer(TOKEN));
    assert.equal((await api.get("/api/agents")).status, 200);
    for (let guess = 0; guess < 20; guess += 1)
      problemOf(await new Api(server.url, bearer(`guess ${guess}`)).get("/api/agents"), 401);
    assert.equal((await api.get("/api/agents")).status, 200);
  });
});

describe("GET /health", () => {
  test("is answered however often it is asked", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_RATE_LIMIT: "5" });
    const answers = await Promise.all(Array.from({ length: 30 }, () => fetch(`${server.url}/health`)));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  test(
    "is 503 while the disk is full, says why to who has the token, and is 200 again afterwards",
    TIMEOUT,
    async (t) => {
      if (!mayMount(t)) return;
      await using scratch = await scratchFolder();
      const folder = join(scratch.path, "disk");
      await mkdir(folder);
      await using disk = await mountMemory(folder, 64 * 1024 * 1024);
      await using server = await ServerProcess.start({
        EVERSTEP_TOKEN: TOKEN,
        EVERSTEP_STORE: `lancedb:${folder}/data`,
      });
      const health = async (headers = {}) => new Api(server.url, headers).get("/health");
      assert.equal((await health()).status, 200);
      await fillUp(disk, 0);
      const full = await eventually("503", async () => {
        const answer = await health(bearer(TOKEN));
        return answer.status === 503 && answer;
      });
      assert.match(full.text, /"error":"store_full: /);
      assert.doesNotMatch((await health()).text, /store_full|\/disk/);
      await makeSpace(disk);
      await eventually("200", async () => (await health()).status === 200);
      await server.kill();
    },
  );
});
