import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { serverFrameSchema } from "../../src/agent-api/messages.ts";
import { ServerProcess, sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { agentUrl, RawClient } from "./raw-client.ts";

describe("the one-chat socket", () => {
  const server = sharedServer();
  const open = () => RawClient.open(server().url);
  before(async () => {
    await mkdir(join(server().folder, "workspace"), { recursive: true });
    await writeFile(join(server().folder, "workspace/tea.md"), "Green tea is steeped at 80 degrees.\n");
  });

  test("says at once that it is ready, and which session it is", TIMEOUT, async () => {
    using client = await open();
    assert.deepEqual(client.frames, [{ type: "status", status: "ready", session_id: client.session_id }]);
    assert.match(client.session_id, /^default/);
    const session = (await (await fetch(`${server().url}/api/sessions/${client.session_id}`)).json()) as Record<
      string,
      unknown
    >;
    assert.deepEqual([session["agent_id"], session["moniker"]], ["default", "chat"]);
  });

  test("is the same chat for all clients, even if the first ones connect at the same time", TIMEOUT, async () => {
    await using fresh = await ServerProcess.start();
    const clients = await Promise.all(Array.from({ length: 10 }, () => RawClient.open(fresh.url)));
    const ids = new Set(clients.map(({ session_id }) => session_id));
    for (const client of clients) client[Symbol.dispose]();
    assert.equal(ids.size, 1, [...ids].join());
    const { sessions } = (await (await fetch(`${fresh.url}/api/sessions`)).json()) as { sessions: unknown[] };
    assert.equal(sessions.length, 1);
  });

  test("answers in chunks that add up to the step's text, then reports the tokens", TIMEOUT, async () => {
    using client = await open();
    const answer = await client.say("read tea.md");
    assert.equal(answer.text, "Green tea is steeped at 80 degrees.\n");
    assert.equal(answer.tokens_used, 0);
    const step = (await (
      await fetch(`${server().url}/api/agent-steps/latest?session_id=${client.session_id}`)
    ).json()) as Record<string, unknown>;
    assert.equal(step["text"], answer.text);
    assert.deepEqual(step["guidance"], [{ text: "read tea.md", user_id: "agent_ws" }]);
  });

  test("gives every frame of an answer the question's own id back", TIMEOUT, async () => {
    using client = await open();
    for (const request_id of ["1", "ответ 😀", "x".repeat(200)])
      assert.match((await client.say("read tea.md", { request_id })).text, /80 degrees/);
    assert.match((await client.say("read tea.md")).text, /80 degrees/);
  });

  test("takes any text: quotes, newlines, emoji, other scripts, half a surrogate pair", TIMEOUT, async () => {
    using client = await open();
    for (const text of [
      '"quoted"\n\ttabbed',
      "😀 Ёлка עברית",
      "\ud83d",
      "\u0000",
      "{{ x }}",
      " ",
      "x".repeat(100_000),
    ]) {
      const { text: answer } = await client.say(text);
      assert.ok(answer.length > 0, JSON.stringify(text.slice(0, 50)));
    }
  });

  const BAD: [name: string, frame: object | string | Buffer, request_id?: string][] = [
    ["no JSON", "hello"],
    ["nothing", ""],
    ["a number", "12"],
    ["null", "null"],
    ["a list", "[]"],
    ["an unknown type", { type: "user_massage", text: "hi" }],
    ["no type", { text: "hi" }],
    ["a server's frame", { type: "event_end", tokens_used: 1 }],
    ["no text, with its id", { type: "user_message", request_id: "seven" }, "seven"],
    ["an empty text, with its id", { type: "user_message", text: "", request_id: "eight" }, "eight"],
    ["a text that is a number", { type: "user_message", text: 7 }],
    ["an id that is a number", { type: "user_message", text: "hi", request_id: 7 }],
    ["an id that is too long", { type: "user_message", text: "hi", request_id: "x".repeat(201) }],
    ["bytes", Buffer.from('{"type":"user_message","text":"hi"}')],
    ["half of an object", '{"type":"user_message","text":'],
    ["a prototype", '{"__proto__": {"type": "user_message", "text": "hi"}}'],
  ];
  for (const [name, frame, request_id] of BAD)
    test(`answers ${name} with bad_message and stays open`, TIMEOUT, async () => {
      using client = await open();
      client.send(frame);
      const { code, message, ...rest } = await client.failure();
      assert.equal(code, "bad_message");
      assert.match(message, /user_message/);
      assert.deepEqual(rest, { request_id, text: "" });
      assert.match((await client.say("read tea.md")).text, /80 degrees/);
    });

  test(
    "answers a second question before the first one ended with busy, and both get their own id",
    TIMEOUT,
    async () => {
      using client = await open();
      client.ask("read tea.md", { request_id: "first" });
      client.ask("list files", { request_id: "second" });
      client.send("rubbish");
      const busy = await client.next();
      assert.deepEqual(
        [busy.type, "code" in busy && busy.code, "request_id" in busy && busy.request_id],
        ["error", "busy", "second"],
      );
      assert.equal((await client.failure()).code, "bad_message");
      assert.match((await client.answer({ request_id: "first" })).text, /80 degrees/);
      assert.match((await client.say("list files", { request_id: "third" })).text, /tea\.md/);
    },
  );

  test("answers many connections one after the other, each with its own answer", TIMEOUT, async () => {
    const clients = await Promise.all(Array.from({ length: 12 }, open));
    const answers = await Promise.all(clients.map((client, at) => client.say(`Zq${at}`, { request_id: `r${at}` })));
    for (const client of clients) client[Symbol.dispose]();
    for (const [at, { text }] of answers.entries()) assert.match(text, new RegExp(`You said: Zq${at}\\n`));
  });

  test("tolerates a client that leaves before its answer", TIMEOUT, async () => {
    for (let times = 0; times < 5; times++) {
      const leaver = await open();
      leaver.ask("list files");
      leaver.socket.terminate();
      await leaver.closed;
    }
    using client = await open();
    assert.match((await client.say("read tea.md")).text, /80 degrees/);
  });

  test("closes a connection whose frame is larger than 256 KB, and no other", TIMEOUT, async () => {
    using other = await open();
    using client = await open();
    assert.ok((await client.say("y".repeat(200_000))).text.length > 0);
    client.ask("x".repeat(256 * 1024));
    assert.equal(await client.closed, 1009, "it says that the frame is too big");
    assert.match((await other.say("read tea.md")).text, /80 degrees/);
  });

  test("closes a connection that breaks the protocol, and no other", TIMEOUT, async () => {
    using other = await open();
    using client = await open();
    const notMasked = Buffer.from([0x81, 0x02, 0x68, 0x69]);
    (client.socket as unknown as { _socket: Socket })._socket.write(notMasked);
    assert.equal(await client.closed, 1002);
    assert.match((await other.say("read tea.md")).text, /80 degrees/);
  });

  test("answers pings", TIMEOUT, async () => {
    using client = await open();
    const pong = once(client.socket, "pong");
    client.socket.ping("are you there?");
    assert.equal(String((await pong)[0]), "are you there?");
  });

  test("is found with and without the slash at its end and with a query, and nowhere else", TIMEOUT, async () => {
    const address = agentUrl(server().url).slice(0, -1);
    for (const good of [address, `${address}/`, `${address}/?x=1`]) {
      const socket = new WebSocket(good);
      const [data] = (await once(socket, "message")) as [Buffer];
      assert.equal(serverFrameSchema.parse(JSON.parse(data.toString())).type, "status");
      socket.terminate();
    }
    for (const bad of [`${address}x`, `${address}/more`, address.replace("agent_ws", "")])
      await assert.rejects(once(new WebSocket(bad), "open"), /404/, bad);
  });

  test("answers a plain request to its path with 404", TIMEOUT, async () => {
    assert.equal((await fetch(`${server().url}/agent_ws/`)).status, 404);
  });
});
