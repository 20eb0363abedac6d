import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { z } from "zod";
import { freePort } from "../free-port.ts";
import { Api, problemOf, read, wrongPaths } from "../server/api.ts";
import { everstep } from "../server/command.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { counted, StubWorker } from "./stub-worker.ts";

const COUNTER = {
  name: "counter",
  kind: "finite",
  description: "Counts.",
  params_schema: {
    type: "object",
    properties: { to: { type: "integer", minimum: 1, description: "The last number." } },
    required: ["to"],
    additionalProperties: false,
  },
  version: "v1",
};

/** Counts to the session's `to`. */
const startCounter = (monikers: unknown = [COUNTER], port = 0) =>
  StubWorker.start(
    monikers,
    (request, response) => {
      response.write('{"usage":{"tokens":2}}\n');
      const { n = -1 } = request.frame.state as { n?: number };
      response.end(counted(request, n + 1 >= Number(request.context.params["to"])));
    },
    port,
  );

async function counterWorld(environment: Record<string, string> = {}) {
  const worker = await startCounter();
  const server = await ServerProcess.start({ EVERSTEP_REMOTE_MONIKERS: worker.url, ...environment });
  const world = await World.of(server);
  return {
    worker,
    server,
    world,
    api: world.api,
    async [Symbol.asyncDispose]() {
      world.close();
      await server[Symbol.asyncDispose]();
      await worker[Symbol.asyncDispose]();
    },
  };
}

/** One such world for the tests of a `describe`; each sets how the worker responds. */
function sharedCounterWorld() {
  let here: Awaited<ReturnType<typeof counterWorld>> | undefined;
  before(async () => {
    here = await counterWorld();
  });
  after(async () => here?.[Symbol.asyncDispose]());
  return () => here ?? assert.fail("the world is opened before the tests run");
}

const listShape = z.object({
  monikers: z.array(z.object({ name: z.string(), version: z.string(), params_schema: z.unknown() })),
  failed: z.array(z.object({ file: z.string(), moniker: z.string().nullable(), error: z.string() })).default([]),
});
const listed = async (api: Api) => read(await api.get("/api/monikers"), 200, listShape);
const versionOf = async (api: Api) => (await listed(api)).monikers.find(({ name }) => name === "counter")?.version;

const iterations = async (api: Api, session_id: string): Promise<number[]> =>
  (await api.steps(session_id)).filter(({ status }) => status === "ok").map(({ iteration }) => iteration);

describe("monikers of a worker over HTTP", () => {
  const shared = sharedCounterWorld();

  test("run like any other: steps with their version, tokens, an end", TIMEOUT, async () => {
    const here = shared();
    const { api, world } = here;
    const [counter] = (await listed(api)).monikers.filter(({ name }) => name === "counter");
    assert.deepEqual(counter, { name: "counter", version: "v1", params_schema: COUNTER.params_schema });
    const asked = Date.now();
    const { session_id } = await api.create("counter", { params: { to: 5 }, options: { step_timeout_s: 100 } });
    const session = await world.status(session_id, "done");
    assert.equal(session.tokens_used, 12);
    const steps = await api.steps(session_id);
    assert.deepEqual(
      steps.map(({ text }) => text),
      ["0", "1", "2", "3", "4", "5"],
    );
    assert.deepEqual([...new Set(steps.map(({ moniker_version }) => moniker_version))], ["v1"]);
    const requests = here.worker.received.filter(({ method }) => method === "POST");
    assert.deepEqual(
      requests.map(({ headers }) => headers["webhook-id"]),
      [0, 1, 2, 3, 4, 5].map((n) => `${session_id}/${n}`),
    );
    const { context } = JSON.parse(requests[0]?.text ?? "") as { context: { deadline: string; params: unknown } };
    assert.deepEqual(context.params, { to: 5 });
    const ms = Date.parse(context.deadline) - asked;
    assert.ok(ms >= 100_000 && ms < 160_000, context.deadline);
  });

  test("have their parameters checked by their JSON Schema, with paths", TIMEOUT, async () => {
    const here = shared();
    const create = (params: Record<string, string | number>) =>
      here.api.post("/api/agents", { agent_id: "a", moniker: "counter", params });
    assert.deepEqual(wrongPaths(await create({ to: "many" })), ["params.to"]);
    assert.deepEqual(wrongPaths(await create({ to: 0 })), ["params.to"]);
    assert.deepEqual(wrongPaths(await create({})), ["params.to"]);
    problemOf(await create({ to: 1, top: 2 }), 400);
  });

  test("are looked for again by a reload, also by everstep reload", TIMEOUT, async () => {
    await using here = await counterWorld();
    const { api, worker } = here;
    worker.monikers = [
      { ...COUNTER, version: "v2" },
      { ...COUNTER, name: "other" },
    ];
    const { monikers } = JSON.parse((await api.post("/api/monikers/reload")).text) as { monikers: unknown };
    assert.deepEqual(monikers, [
      { name: "counter", version: "v2", change: "changed" },
      { name: "other", version: "v1", change: "added" },
    ]);
    await worker.kill();
    const { code, stderr } = await everstep(["reload", "--url", here.server.url]);
    assert.equal(code, 1);
    assert.match(stderr, /remote_gone: http:.*counter keeps its last good version/s);
    assert.equal(await versionOf(api), "v2", "what it had is kept");
    worker.monikers = [{ ...COUNTER, version: "v3" }];
    await worker.listen();
    await eventually("the new version, without a further reload", async () => (await versionOf(api)) === "v3");
  });

  test("with a name that is taken are reported, and the first keeps the name", TIMEOUT, async () => {
    await using first = await startCounter([COUNTER, { ...COUNTER, name: "count" }]);
    await using second = await startCounter([{ ...COUNTER, version: "second" }]);
    await using server = await ServerProcess.start({ EVERSTEP_REMOTE_MONIKERS: `${first.url}, ${second.url}` });
    const api = new Api(server.url);
    assert.equal(await versionOf(api), "v1");
    const { failed } = await listed(api);
    assert.deepEqual(
      failed.map(({ file }) => file),
      [first.url, second.url],
    );
    assert.match(failed[0]?.error ?? "", /is already named count/);
    assert.match(failed[1]?.error ?? "", new RegExp(`${first.url} is already named counter`));
    assert.match(server.stderr, /is already named count/);
  });
});

describe("a worker that is away", () => {
  const shared = sharedCounterWorld();
  const retry = { max_attempts: 100, backoff_ms: 20 };

  test("at the start is found later, and its sessions go on", TIMEOUT, async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await using server = await ServerProcess.start({ EVERSTEP_REMOTE_MONIKERS: url });
    const api = new Api(server.url);
    assert.match((await listed(api)).failed[0]?.error ?? "", /^remote_gone: http:\/\/127.0.0.1/);
    problemOf(await api.post("/api/agents", { agent_id: "a", moniker: "counter", params: { to: 1 } }), 400);
    const worker = await startCounter([COUNTER], port);
    await eventually("the moniker", async () => (await versionOf(api)) === "v1");
    assert.deepEqual((await listed(api)).failed, []);
    const { session_id } = await api.create("counter", {
      params: { to: 40 },
      options: { retry, step_interval_ms: 20 },
    });
    await eventually("some steps", async () => (await api.session(session_id)).iteration > 5);
    await server.kill();
    await worker.kill();
    await server.start();
    await eventually("the first try", async () => /no moniker is named counter here, and http/.test(server.stderr));
    await worker.listen();
    await eventually("the end", async () => (await api.session(session_id)).status === "done");
    assert.deepEqual(
      await iterations(api, session_id),
      Array.from({ length: 41 }, (_, n) => n),
    );
    await worker.kill();
  });

  test("during a step is one failed attempt of it", TIMEOUT, async () => {
    const here = shared();
    const { worker, world, api } = here;
    const attempts: unknown[] = [];
    worker.answer = (request, response) => {
      attempts.push([request.context.attempt.number, request.context.attempt.after]);
      if (attempts.length === 2) void response.destroy();
      else response.end(counted(request, request.frame.step === "2"));
    };
    const { session_id } = await api.create("counter", { params: { to: 2 }, options: { retry } });
    await world.status(session_id, "done");
    assert.deepEqual(attempts, [
      [1, null],
      [1, null],
      [2, "error"],
      [1, null],
    ]);
    assert.deepEqual(await iterations(api, session_id), [0, 1, 2]);
  });

  test("permanently ends the session as error after its attempts, with the worker's name", TIMEOUT, async () => {
    const here = shared();
    here.worker.answer = (_, response) => void response.destroy();
    const options = { retry: { max_attempts: 2, backoff_ms: 1 } };
    const { session_id } = await here.api.create("counter", { params: { to: 2 }, options });
    const { last_error } = await here.world.status(session_id, "error");
    assert.match(last_error ?? "", new RegExp(`^remote_gone: ${here.worker.url}`));
  });
});

describe("a worker that misbehaves does not harm the server", () => {
  const shared = sharedCounterWorld();

  test("one that hangs is cut off at the deadline, by its name", TIMEOUT, async () => {
    const here = shared();
    const { worker, world, api } = here;
    const closed = Promise.withResolvers<void>();
    worker.answer = (_, response) => void response.on("close", closed.resolve).write('{"delta":"so"}\n');
    const options = { step_timeout_s: 0.3, retry: { max_attempts: 1, backoff_ms: 0 } };
    const { session_id } = await api.create("counter", { params: { to: 2 }, options });
    const { last_error } = await world.status(session_id, "error");
    assert.match(last_error ?? "", new RegExp(`^timeout: .*${worker.url} did not answer in time`));
    await closed.promise;
  });

  test("one that sends a frame nested without end fails its step alone", TIMEOUT, async () => {
    const here = shared();
    const { worker, world, api, server } = here;
    const deep = `${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}`;
    worker.answer = (_, response) =>
      void response.end(`{"frame":{"step":"0","next_step":"1","done":false,"state":${deep}}}\n`);
    const options = { retry: { max_attempts: 1, backoff_ms: 0 } };
    const { session_id } = await api.create("counter", { params: { to: 2 }, options });
    const { last_error } = await world.status(session_id, "error");
    assert.match(last_error ?? "", /nested|remote_misbehaved/);
    assert.ok(server.isAlive);
  });
});
