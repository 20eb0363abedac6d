import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { JsonValue } from "../../src/domain/json.ts";
import { JSON_BODY, pathOf, problemOf, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const MEBIBYTE = 1024 * 1024;

/** Every route that reads a body, with a body that it accepts. */
const bodyRoutes = (
  agent_id: string,
  session_id: string,
  conversation_id: string,
): [method: string, path: string, body: object][] => [
  ["POST", "/api/agents", { agent_id: "a", moniker: "echo" }],
  ["PUT", pathOf("agents", agent_id, "config"), { moniker: "echo" }],
  ["POST", "/api/actions", { action_type: "agent_pause", session_id }],
  ["POST", pathOf("sessions", session_id, "pause"), {}],
  ["POST", pathOf("sessions", session_id, "resume"), {}],
  ["POST", pathOf("sessions", session_id, "interrupt"), { guidance: "x" }],
  ["POST", pathOf("sessions", session_id, "fork"), { iteration: 0 }],
  ["POST", pathOf("agents", agent_id, "pause"), {}],
  ["POST", pathOf("agents", agent_id, "interrupt"), { guidance: "x" }],
  ["POST", "/api/conversations", {}],
  ["PATCH", pathOf("conversations", conversation_id), {}],
  ["POST", pathOf("conversations", conversation_id, "participants"), { user_id: "ann" }],
  ["POST", pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: "hello" }],
];

describe("a request's body", () => {
  const routes = async () => {
    const { api } = world();
    const { agent_id, session_id } = await api.create("echo");
    return bodyRoutes(agent_id, session_id, await api.conversation());
  };

  test("that is not JSON is answered 400 by every route", TIMEOUT, async () => {
    const broken = ["{", "not json", '{"a":}', "[1,", '"', "{'a': 1}", "\u0000", "NaN", '{"a": 1} {"b": 2}', "\ufeff"];
    for (const [method, path] of await routes())
      for (const body of broken) {
        const problem = problemOf(await world().api.send(method, path, body, JSON_BODY), 400);
        assert.ok((problem.errors?.length ?? 0) > 0, `${method} ${path} ${body}`);
      }
  });

  test("of another type than an object is answered 400 by every route", TIMEOUT, async () => {
    for (const [method, path] of await routes())
      for (const body of ["5", '"text"', "[]", "true", "[{}]"])
        problemOf(await world().api.send(method, path, body, JSON_BODY), 400);
  });

  test("that says it is something else than JSON is answered 400", TIMEOUT, async () => {
    const { api } = world();
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "nonsense",
    ])
      for (const [method, path, body] of await routes())
        problemOf(await api.send(method, path, JSON.stringify(body), { "content-type": type }), 400);
  });

  test("that is missing is answered 400 where a field is needed, and accepted where none is", TIMEOUT, async () => {
    const { api } = world();
    const optional = /\/(pause|resume|destroy|conversations)$/;
    for (const headers of [{}, JSON_BODY] as Record<string, string>[])
      for (const [method, path] of await routes()) {
        const { status, text } = await api.send(method, path, undefined, headers);
        assert.equal(status < 300 ? "accepted" : status, optional.test(path) ? "accepted" : 400, `${path} ${text}`);
      }
  });

  test("over 1 MiB is answered 413 by every route, and one below it is read", TIMEOUT, async () => {
    const { api } = world();
    const tooLarge = JSON.stringify({ filler: "x".repeat(MEBIBYTE) });
    for (const [method, path] of await routes()) problemOf(await api.send(method, path, tooLarge, JSON_BODY), 413);
    const { session_id } = await api.create("echo");
    const guidance = "é".repeat(500_000);
    const answer = await api.post(pathOf("sessions", session_id, "interrupt"), { guidance });
    await world().consumed(read(answer, 202, SHAPES.accepted).action_id);
    assert.equal((await api.steps(session_id))[0]?.text, guidance);
  });

  test("over 1 MiB that does not say its length is answered 413 before its end", TIMEOUT, async () => {
    const sent = request(`${world().server.url}/api/agents`, { method: "POST", headers: JSON_BODY });
    for (let part = 0; part < 2 * 16; part += 1) sent.write("x".repeat(MEBIBYTE / 16));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    sent.on("error", () => {}).destroy();
    assert.equal(response.statusCode, 413);
  });

  test("with a key that reaches for prototypes is answered 400 or is data", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    const path = pathOf("sessions", session_id, "interrupt");
    for (const body of ['{"guidance":{"__proto__":{"polluted":1}}}', '{"__proto__":{"guidance":"x"},"guidance":"y"}'])
      problemOf(await api.send("POST", path, body, JSON_BODY), 400);
    const data = { constructor: "a word", toString: null, hasOwnProperty: 1 } as never;
    const answer = read(await api.post(path, { guidance: data }), 202, SHAPES.accepted);
    await world().consumed(answer.action_id);
    assert.deepEqual((await api.steps(session_id))[0]?.guidance, [data]);
  });

  test("nested deeper than anyone needs is answered 400 by every route", TIMEOUT, async () => {
    for (const [method, path] of await routes())
      for (const depth of [201, 10_000, 250_000]) {
        const body = `{"guidance":${"[".repeat(depth)}${"]".repeat(depth)}}`;
        problemOf(await world().api.send(method, path, body, JSON_BODY), 400);
      }
  });

  test("nested as deep as is allowed is stored and comes back whole", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    const guidance = JSON.parse(`${"[".repeat(199)}1${"]".repeat(199)}`) as JsonValue;
    const answer = await api.post(pathOf("sessions", session_id, "interrupt"), { guidance });
    await world().consumed(read(answer, 202, SHAPES.accepted).action_id);
    assert.deepEqual((await api.steps(session_id))[0]?.guidance, [guidance]);
  });
});

describe("an address", () => {
  test("that is nowhere is answered 404 as a problem", TIMEOUT, async () => {
    const { api } = world();
    for (const path of [
      "/nowhere",
      "/api",
      "/api/",
      "/api/nothing",
      "/api/agents/a/b/c",
      "/API/agents",
      "/api/sessions/x/dance",
    ])
      for (const method of ["GET", "POST", "DELETE"]) problemOf(await api.send(method, path), 404);
  });

  test("with a method that it has not is answered as a problem of the client", TIMEOUT, async () => {
    const { api } = world();
    for (const [method, path] of [
      ["DELETE", "/api/agents"],
      ["PUT", "/api/sessions"],
      ["GET", pathOf("sessions", "x", "pause")],
      ["POST", "/health"],
      ["PATCH", "/metrics"],
    ] as const) {
      const { status, headers } = await api.send(method, path);
      assert.ok(status === 404 || status === 405, `${method} ${path} was answered ${status}`);
      assert.match(headers.get("content-type") ?? "", /^application\/problem\+json/);
    }
  });

  test("whose escapes are broken is answered 400", TIMEOUT, async () => {
    for (const path of ["/api/agents/%", "/api/agents/%zz", "/api/agents/%ff", "/api/sessions/%c3%28"])
      problemOf(await world().api.send("GET", path), 400);
  });

  test("that is too long is answered 431", TIMEOUT, async () => {
    problemOf(await world().api.send("GET", `/api/search?q=${"x".repeat(20_000)}`), 431);
  });

  test("with an id that is too long or has control characters is answered 400", TIMEOUT, async () => {
    const { api } = world();
    for (const id of ["x".repeat(201), "a\u0000b", "a\nb", "\u007f"])
      for (const kind of ["agents", "sessions", "actions", "conversations"])
        assert.equal(wrongPaths(await api.get(pathOf(kind, id))).length, 1, `${kind} ${JSON.stringify(id)}`);
  });
});

describe("a connection", () => {
  test("that talks nonsense is closed, and the server lives on", TIMEOUT, async () => {
    const { server, api } = world();
    const { hostname, port } = new URL(server.url);
    for (const text of [
      "\u0000\u0001\u0002\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    ]) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.end(text);
      socket.resume();
      await once(socket, "close");
    }
    assert.equal((await api.get("/health")).status, 200);
  });
});
