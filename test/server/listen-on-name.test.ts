import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { newHttpServer } from "../../src/surfaces/http/http-server.ts";
import { listenOnName } from "../../src/surfaces/http/listen-on-name.ts";

const LIMITS = { max_connections: 100, max_connections_per_address: 2 };
const ADDRESSES = ["127.0.0.1", "127.0.0.2"];
// On most machines these are 127.0.0.1 and ::1; on Linux all of 127.0.0.0/8 is loopback.
const skip = process.platform !== "linux" && "only Linux has 127.0.0.2 without being told";
const lookup = async () => [...ADDRESSES, "192.0.2.1"].map((address) => ({ address }));

async function listening() {
  const server = newHttpServer((_, response) => void response.end("here"), LIMITS);
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => socket.close(1000, "here"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

test("a server on a name with several loopback addresses listens on each, for requests and sockets alike", {
  skip,
}, async () => {
  const { server, port } = await listening();
  const stop = await listenOnName(server, "localhost", lookup);
  for (const address of ADDRESSES) {
    const response = await fetch(`http://${address}:${port}/`, { headers: { connection: "close" } });
    assert.equal(await response.text(), "here");
    const [code, reason] = (await once(new WebSocket(`ws://${address}:${port}/`), "close")) as [number, Buffer];
    assert.deepEqual([code, String(reason)], [1000, "here"]);
  }
  await stop();
  await assert.rejects(fetch(`http://127.0.0.2:${port}/`));
  server.close();
});

test("a server on an address listens there alone, and on a name's other addresses only if they are free", {
  skip,
}, async () => {
  const { server, port } = await listening();
  await (await listenOnName(server, "127.0.0.1", lookup))();
  await assert.rejects(fetch(`http://127.0.0.2:${port}/`));
  const stop = await listenOnName(server, "localhost", lookup);
  await assert.rejects(listenOnName(server, "localhost", lookup), { code: "EADDRINUSE" });
  await stop();
  server.close();
});
