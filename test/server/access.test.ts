import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api, pathOf, problemOf, read, SHAPES } from "./api.ts";
import { everstep } from "./command.ts";
import { ServerProcess, sharedServer, TIMEOUT } from "./server-fixture.ts";
import { spawnEverstep } from "./spawn-everstep.ts";
import { Watcher } from "./watcher.ts";

const TOKEN = "a-secret-that-nobody-guesses";
const METRICS_TOKEN = "another-secret-for-prometheus";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Every route of the API, with ids that do not exist. */
const ROUTES: [method: string, path: string][] = [
  ["POST", "/api/agents"],
  ["GET", "/api/agents"],
  ["GET", "/api/agents/x"],
  ["GET", "/api/agents/x/config"],
  ["PUT", "/api/agents/x/config"],
  ["GET", "/api/agents/x/sessions"],
  ["GET", "/api/sessions"],
  ["GET", "/api/sessions/x"],
  ...["sessions", "agents"].flatMap((target) =>
    ["pause", "resume", "destroy", "interrupt"].map((verb): [string, string] => ["POST", `/api/${target}/x/${verb}`]),
  ),
  ["POST", "/api/sessions/x/fork"],
  ["POST", "/api/actions"],
  ["GET", "/api/actions"],
  ["GET", "/api/actions/x"],
  ["GET", "/api/agent-steps?session_id=x"],
  ["GET", "/api/agent-steps/latest?session_id=x"],
  ["POST", "/api/conversations"],
  ["GET", "/api/conversations"],
  ["GET", "/api/conversations/x"],
  ["PATCH", "/api/conversations/x"],
  ["POST", "/api/conversations/x/participants"],
  ["GET", "/api/conversations/x/participants"],
  ["DELETE", "/api/conversations/x/participants/y"],
  ["POST", "/api/conversations/x/messages"],
  ["GET", "/api/conversations/x/messages"],
  ["GET", "/api/session-summaries"],
  ["GET", "/api/system"],
  ["POST", "/api/sessions/x/steps/0/rerun"],
  ["GET", "/api/monikers"],
  ["POST", "/api/monikers/reload"],
  ["GET", "/api/search?q=x"],
  ["GET", "/openapi.json"],
  ["POST", "/reset"],
];

describe("a server with a token", () => {
  const server = sharedServer({
    EVERSTEP_TOKEN: TOKEN,
    EVERSTEP_METRICS_TOKEN: METRICS_TOKEN,
    EVERSTEP_LOG_LEVEL: "trace",
  });

  test("answers 401 on every route without it, and does nothing", TIMEOUT, async () => {
    const stranger = new Api(server().url);
    for (const [method, path] of ROUTES) problemOf(await stranger.send(method, path), 401);
    problemOf(await stranger.post("/api/agents", { agent_id: "thief", moniker: "echo" }), 401);
    problemOf(await new Api(server().url, bearer(TOKEN)).get(pathOf("agents", "thief")), 404);
  });

  test("answers 401 for a token that is wrong in any way", TIMEOUT, async () => {
    const wrong = ["", TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase(), METRICS_TOKEN, "undefined", "null"];
    const headers = [...wrong.map(bearer), { authorization: TOKEN }, { authorization: `Basic ${TOKEN}` }];
    for (const header of headers) problemOf(await new Api(server().url, header).get("/api/agents"), 401);
    problemOf(await new Api(server().url).get("/api/agents", { token: TOKEN }), 401);
  });

  test("lets in who has it, whatever name they reach the server by", TIMEOUT, async () => {
    const api = new Api(server().url, { ...bearer(TOKEN), origin: "https://console.example" });
    for (const [method, path] of ROUTES)
      assert.notEqual((await api.send(method, path)).status, 401, `${method} ${path}`);
    read(await api.post("/api/agents", { agent_id: "guest", moniker: "echo" }), 202, SHAPES.accepted);
    assert.equal((await new Api(server().url, { authorization: `bearer ${TOKEN}` }).get("/api/agents")).status, 200);
  });

  test("answers /health and the console to everyone", TIMEOUT, async () => {
    const stranger = new Api(server().url);
    for (const path of ["/health", "/"]) assert.equal((await stranger.get(path)).status, 200, path);
  });

  test("answers /metrics to its own token only", TIMEOUT, async () => {
    problemOf(await new Api(server().url).get("/metrics"), 401);
    problemOf(await new Api(server().url, bearer(TOKEN)).get("/metrics"), 401);
    assert.equal((await new Api(server().url, bearer(METRICS_TOKEN)).get("/metrics")).status, 200);
  });

  test("refuses an unknown address like any other", TIMEOUT, async () => {
    problemOf(await new Api(server().url).get("/api/nothing"), 401);
    problemOf(await new Api(server().url, bearer(TOKEN)).get("/api/nothing"), 404);
  });

  test("lets sockets in by auth: {token} and refuses the others with a reason", TIMEOUT, async () => {
    using guest = await Watcher.connect(server().url, { auth: { token: TOKEN } });
    await guest.follow({ all: true });
    for (const auth of [{}, { token: "" }, { token: "wrong" }, { token: 5 }, { token: [TOKEN] }, { token: null }])
      await assert.rejects(Watcher.connect(server().url, { auth }), /a token is needed/, JSON.stringify(auth));
    await assert.rejects(Watcher.connect(server().url, { auth: {}, transports: ["polling"] }), /a token is needed/);
  });

  test("answers the command line if it has the token, and says what is missing if not", TIMEOUT, async () => {
    const at = ["--url", server().url];
    const [without, wrong, asOption, inEnvironment] = await Promise.all([
      everstep(["ps", ...at]),
      everstep(["ps", ...at, "--token", "wrong"]),
      everstep(["ps", "--json", ...at, "--token", TOKEN]),
      everstep(["ps", "--json", ...at], { EVERSTEP_TOKEN: TOKEN }),
    ]);
    for (const { code, stderr } of [without, wrong]) {
      assert.equal(code, 1);
      assert.match(stderr, /token is needed.*set EVERSTEP_TOKEN or use --token\n$/);
    }
    for (const { code, stdout } of [asOption, inEnvironment]) {
      assert.equal(code, 0);
      assert.ok(Array.isArray((JSON.parse(stdout) as { sessions: unknown }).sessions));
    }
    const api = new Api(server().url, bearer(TOKEN));
    const { session_id } = await api.create("count", { params: { to: 3 } });
    const followed = await everstep(["logs", "-f", session_id, ...at], { EVERSTEP_TOKEN: TOKEN });
    assert.deepEqual([followed.code, followed.stdout], [0, "#0 0\n#1 1\n#2 2\n#3 3\n"]);
  });

  test("never writes a token into its log, also where requests fail", TIMEOUT, async () => {
    const api = new Api(server().url, bearer(TOKEN));
    await api.send("POST", "/api/agents", "{", { "content-type": "application/json" });
    await api.get("/api/nothing", { token: TOKEN });
    await Watcher.connect(`${server().url}?token=${TOKEN}`, { auth: { token: TOKEN } }).then((one) =>
      one[Symbol.dispose](),
    );
    for (const secret of [TOKEN, METRICS_TOKEN])
      assert.ok(!`${server().stdout}${server().stderr}`.includes(secret), "a token is in what the server wrote");
    assert.match(server().stderr, /Server listening/, "the log was read");
  });
});

describe("a server with a token and nothing else", () => {
  test("answers /metrics to everyone, and 429 to those who ask too often", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_RATE_LIMIT: "20" });
    assert.equal((await new Api(server.url).get("/metrics")).status, 200);
    problemOf(await new Api(server.url).get("/api/agents"), 401);
    const api = new Api(server.url, bearer(TOKEN));
    const answers = await Promise.all(Array.from({ length: 30 }, () => api.get("/api/agents")));
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.length >= 10 && refused.length < 20, `${refused.length} of 30 were refused`);
    for (const answer of refused) problemOf(answer, 429);
  });
});

describe("a server without a token", () => {
  let server: ServerProcess;
  before(async () => {
    server = await ServerProcess.start();
  });
  after(async () => server.finish());
  /** `fetch` does not let its caller set the Host header. */
  const statusWith = async (headers: Record<string, string>, path = "/api/agents") => {
    const { hostname, port } = new URL(server.url);
    const sent = request({ hostname, port, path, headers });
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await text(response);
    return response.statusCode;
  };

  test("answers this machine under its loopback names", TIMEOUT, async () => {
    for (const host of [
      "127.0.0.1",
      "localhost",
      "LOCALHOST",
      "localhost:4180",
      "[::1]",
      "127.1.2.3:80",
      "app.localhost",
    ])
      assert.equal(await statusWith({ host }), 200, host);
    for (const origin of ["http://localhost:5173", "http://127.0.0.1", "https://[::1]:8443"])
      assert.equal(await statusWith({ host: "localhost", origin }), 200, origin);
  });

  const FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evillocalhost",
    "0.0.0.0",
    "10.0.0.1",
    "127.0.0.1@evil.example",
    "%",
  ];
  test("answers 403 to any other host, on every route", TIMEOUT, async () => {
    for (const host of FOREIGN) assert.equal(await statusWith({ host }), 403, host);
    for (const path of ["/", "/health", "/metrics", "/docs", "/openapi.json", "/api/monikers"])
      assert.equal(await statusWith({ host: "evil.example" }, path), 403, path);
  });

  test("answers 403 to any other origin, as a problem", TIMEOUT, async () => {
    for (const origin of [...FOREIGN.map((host) => `http://${host}`), "null", "file://", "", "chrome-extension://abc"])
      assert.equal(await statusWith({ host: "localhost", origin }), 403, origin);
    problemOf(await new Api(server.url, { origin: "https://evil.example" }).get("/api/agents"), 403);
    const post = await new Api(server.url, { origin: "https://evil.example" }).post("/api/agents", {
      agent_id: "csrf",
      moniker: "echo",
    });
    problemOf(post, 403);
    problemOf(await new Api(server.url).get(pathOf("agents", "csrf")), 404);
  });

  test("refuses sockets of any other host or origin, over either transport", TIMEOUT, async () => {
    const polling = "/socket.io/?EIO=4&transport=polling";
    for (const [name, value] of [
      ["origin", "https://evil.example"],
      ["host", "evil.example"],
      ["origin", "null"],
    ] as const) {
      const extraHeaders = { [name]: value };
      await assert.rejects(Watcher.connect(server.url, { extraHeaders }), `${name}: ${value}`);
      assert.equal(await statusWith(extraHeaders, polling), 403, `${name}: ${value}`);
    }
    assert.equal(await statusWith({ host: "localhost" }, polling), 200);
    for (const transport of ["websocket", "polling"]) {
      const extraHeaders = { origin: "http://localhost:5173" };
      using own = await Watcher.connect(server.url, { transports: [transport], extraHeaders });
      await own.follow({ all: true });
    }
  });
});

describe("everstep serve without a token", () => {
  const others = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, family }) => !internal && family === "IPv4");
  for (const host of ["0.0.0.0", "::", ...others.slice(0, 1).map(({ address }) => address)]) {
    test(
      `refuses to start on ${host === "0.0.0.0" || host === "::" ? host : "an outside address"}`,
      TIMEOUT,
      async () => {
        await using folder = await scratchFolder();
        const child = spawnEverstep(
          ["serve"],
          { EVERSTEP_HOST: host, EVERSTEP_PORT: "0", EVERSTEP_STORE: `lancedb:${folder.path}/data` },
          folder.path,
        );
        const said = text(child.stderr as NonNullable<typeof child.stderr>);
        const [code] = (await once(child, "exit")) as [number];
        assert.equal(code, 1);
        assert.match(await said, /^token_required: EVERSTEP_HOST=\S+ .*; set EVERSTEP_TOKEN, or use 127\.0\.0\.1\n$/);
      },
    );
  }

  test("with a token it starts there", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_HOST: "0.0.0.0", EVERSTEP_TOKEN: TOKEN });
    const { port } = new URL(server.url);
    assert.equal((await new Api(`http://127.0.0.1:${port}`, bearer(TOKEN)).get("/api/agents")).status, 200);
  });
});
