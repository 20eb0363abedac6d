import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { ServerProcess, sharedServer, TIMEOUT } from "./server-fixture.ts";

const UPGRADE = [
  "Host: 127.0.0.1",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const upgradeTo = (target: string, ...headers: string[]): string =>
  [`GET ${target} HTTP/1.1`, ...UPGRADE, ...headers, "", ""].join("\r\n");

const connectTo = ({ url }: ServerProcess): Socket => {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => {});
};

/** What the server sent before it closed the connection. */
async function answerTo(server: ServerProcess, request: string): Promise<string> {
  const socket = connectTo(server);
  socket.write(request);
  return text(socket);
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);

const WITHOUT_MEANING = ["//", "///", "http://", "//:", "http://[", "//[::1", "//a b:c", "http://x:99999/", "//%"];

for (const [name, environment] of [
  ["without a token", {}],
  ["with a token", { EVERSTEP_TOKEN: "a-secret-that-nobody-guesses" }],
] as const)
  describe(`a server ${name}`, () => {
    const server = sharedServer(environment);

    test("answers 400 to an upgrade whose target is not a URL, and closes it", TIMEOUT, async () => {
      for (const target of WITHOUT_MEANING.filter((one) => !URL.canParse(one, "http://localhost"))) {
        const status = statusOf(await answerTo(server(), upgradeTo(target)));
        assert.equal(status, 400, target);
      }
    });

    test("answers 404 to an upgrade of any other path, and closes it at once", TIMEOUT, async () => {
      for (const target of ["/", "/nowhere", "/socket.io", "/socket.iofoo", "/agent_ws/x", "/api/agents", "*"])
        assert.equal(statusOf(await answerTo(server(), upgradeTo(target))), 404, target);
    });

    test("outlives clients that reset their connection right after an upgrade was asked for", TIMEOUT, async () => {
      const targets = ["/nowhere", "//", "/agent_ws/", "/socket.io/?EIO=4&transport=websocket", "/socket.io/?EIO=9"];
      for (let round = 0; round < 60; round += 1)
        await Promise.all(
          targets.map(async (target) => {
            const socket = connectTo(server());
            await once(socket, "connect");
            socket.write(upgradeTo(target));
            if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
            const closed = once(socket, "close");
            socket.resetAndDestroy();
            await closed;
          }),
        );
      assert.equal((await fetch(`${server().url}/health`)).status, 200);
      assert.ok(server().isAlive, server().stderr);
    });
  });
