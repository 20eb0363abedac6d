import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { type Rerun, rerunSchema } from "../../src/domain/rerun.ts";
import { ModelServer, reply } from "../llm/model-server.ts";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { Api, problemOf, read } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";

/** Adds its guidance to a sum and writes the sum times a factor. The tests change its file. */
const adder = (factor: number): string =>
  monikerFile("adder", "0", {
    kind: "reactive",
    more: `async step({ step, state, guidance = [] }: any, { params, tools, is_rerun }: any) {
    const sum = guidance.reduce((total: number, said: any) => total + Number(said), state.sum ?? 0);
    if (sum < 0) throw new Error("below zero");
    await tools.workspace.write("sums/" + step + ".txt", String(sum));
    const written = await tools.workspace.read("sums/" + step + ".txt");
    return { step, next_step: String(Number(step) + 1), state: { sum }, text: String(sum * ${factor}), data: { written, is_rerun: is_rerun ?? null }, done: false };
  },`,
  });

describe("a recorded step that runs once more", () => {
  let files: MonikerFiles;
  let model: ModelServer;
  let server: ServerProcess;
  let api: Api;
  before(async () => {
    files = await MonikerFiles.with({ "adder.ts": adder(1) });
    model = await ModelServer.open();
    const environment = { EVERSTEP_MONIKERS: files.folder, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "sk-test" };
    server = await ServerProcess.start(environment);
    api = new Api(server.url);
  });
  after(async () => {
    await server?.finish();
    await model?.[Symbol.asyncDispose]();
    await files?.[Symbol.asyncDispose]();
  });

  const path = (session_id: string, iteration: number) => `/api/sessions/${session_id}/steps/${iteration}/rerun`;
  const rerun = async (session_id: string, iteration: number, body: JsonObject = {}): Promise<Rerun> =>
    read(await api.post(path(session_id, iteration), body), 200, rerunSchema.strict());

  /** A session that received each number in a separate step. */
  async function added(...numbers: number[]): Promise<string> {
    const { session_id } = await api.create("adder");
    for (const [iteration, number] of numbers.entries()) {
      await api.post(`/api/sessions/${session_id}/interrupt`, { guidance: number });
      await eventually("the step", async () => (await api.session(session_id)).iteration === iteration);
    }
    return session_id;
  }

  test("gives the same where nothing changed, and says which version ran", TIMEOUT, async () => {
    const session_id = await added(1, 2, 3);
    for (const [iteration, text] of ["1", "3", "6"].entries()) {
      const { frame, error, ...again } = await rerun(session_id, iteration);
      assert.equal(frame?.text, text);
      assert.deepEqual(frame?.data, { written: text, is_rerun: true });
      assert.deepEqual([error, again.differences], [null, ["data"]], "only what tells that it is a rerun");
      assert.match(again.moniker_version ?? "", /^[0-9a-f]{12}$/);
    }
    const { session_id: counting } = await api.create("count", { params: { to: 2 } });
    await eventually("the end", async () => (await api.session(counting)).status === "done");
    const again = await rerun(counting, 1);
    assert.deepEqual([again.frame?.text, again.differs, again.differences], ["1", false, []]);
  });

  test("takes another state and other guidance", TIMEOUT, async () => {
    const session_id = await added(1, 2);
    assert.equal((await rerun(session_id, 1, { guidance: 5 })).frame?.text, "6");
    assert.equal((await rerun(session_id, 1, { guidance: [5, 6] })).frame?.text, "12");
    assert.equal((await rerun(session_id, 1, { guidance: [] })).frame?.text, "1");
    const again = await rerun(session_id, 1, { state: { sum: 40 } });
    assert.deepEqual([again.frame?.text, again.frame?.state, again.differs], ["42", { sum: 42 }, true]);
    assert.deepEqual(again.differences, ["state", "text", "data"]);
  });

  test("leaves no trace: no row, no event, no file", TIMEOUT, async () => {
    const session_id = await added(1, 2);
    const whole = async () => [await api.session(session_id), await api.steps(session_id)];
    const rows = await whole();
    using watcher = await Watcher.connect(server.url);
    await watcher.socket.emitWithAck("subscribe", { all: true });
    const { frame } = await rerun(session_id, 1, { state: { sum: 7 } });
    assert.deepEqual(frame?.data, { written: "9", is_rerun: true }, "the step sees what it wrote");
    // A step of another session is reported after anything that the rerun would have reported.
    const { session_id: other } = await api.create("count", { params: { to: 0 } });
    await eventually("the other's step", async () => watcher.events.some(({ event }) => event === "agent_step"));
    const sessions = watcher.events.map(({ payload }) => (payload as { session_id: string }).session_id);
    assert.deepEqual([...new Set(sessions)], [other]);
    assert.deepEqual(await whole(), rows);
    assert.equal(await readFile(join(server.folder, "workspace/sums/1.txt"), "utf8"), "3");
  });

  test("that fails reports the error; a failed one can be run with its recorded input", TIMEOUT, async () => {
    const session_id = await added(1);
    const failed = await rerun(session_id, 0, { guidance: -5 });
    assert.deepEqual([failed.frame, failed.error, failed.differs], [null, "Error: below zero", true]);
    const { session_id: failing } = await api.create("adder", { options: { retry: { max_attempts: 1 } } });
    await api.post(`/api/sessions/${failing}/interrupt`, { guidance: -5 });
    await eventually("the error", async () => (await api.session(failing)).status === "error");
    const same = await rerun(failing, 0);
    assert.deepEqual([same.error, same.differs], ["Error: below zero", false]);
    const mended = await rerun(failing, 0, { guidance: 5 });
    assert.deepEqual([mended.frame?.text, mended.differences], ["5", ["error"]]);
  });

  test("of a fork's past runs as its parent's", TIMEOUT, async () => {
    const session_id = await added(1, 2, 3);
    const forked = JSON.parse(
      (await api.post(`/api/sessions/${session_id}/fork`, { iteration: 1, guidance: 10 })).text,
    );
    const { session_id: fork } = forked as { session_id: string };
    await eventually("the fork's step", async () => (await api.session(fork)).iteration === 2);
    assert.equal((await rerun(fork, 1)).frame?.text, "3");
    assert.equal((await rerun(fork, 2)).frame?.text, "13");
  });

  test("migrates the recorded state as the step itself would, but not a state that it is given", TIMEOUT, async () => {
    await files.write({ "migrating.ts": monikerFile("migrating", "JSON.stringify(state)", { kind: "reactive" }) });
    await api.post("/api/monikers/reload");
    const { session_id } = await api.create("migrating");
    for (const iteration of [0, 1]) {
      await api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "go on" });
      await eventually("the step", async () => (await api.session(session_id)).iteration === iteration);
    }
    const more = "migrate: (state: any, from: string) => ({ ...state, from }),";
    const changed = monikerFile("migrating", "JSON.stringify(state)", { kind: "reactive", more });
    await files.write({ "migrating.ts": changed });
    await api.post("/api/monikers/reload");
    const [first] = await api.steps(session_id);
    assert.equal((await rerun(session_id, 0)).frame?.text, "{}", "there is no state before the first step");
    assert.equal((await rerun(session_id, 1)).frame?.text, JSON.stringify({ from: first?.moniker_version }));
    assert.equal((await rerun(session_id, 1, { state: { given: true } })).frame?.text, '{"given":true}');
  });

  test("ends when nobody waits for its result any more", TIMEOUT, async () => {
    const file = join(files.folder, "aborted");
    const head = 'import { writeFile } from "node:fs/promises";\nimport { once } from "node:events";';
    const says = `context.is_rerun ? await Promise.all([once(context.signal, "abort"), writeFile(${JSON.stringify(`${file}.begun`)}, "")]).then(() => writeFile(${JSON.stringify(file)}, "aborted")) : "done"`;
    await files.write({ "endless.ts": monikerFile("endless", says, { head }) });
    await api.post("/api/monikers/reload");
    const { session_id } = await api.create("endless");
    await eventually("the end", async () => (await api.session(session_id)).status === "done");
    const leaving = new AbortController();
    const asked = fetch(server.url + path(session_id, 0), { method: "POST", signal: leaving.signal });
    await eventually("the step runs", () =>
      access(`${file}.begun`).then(
        () => true,
        () => false,
      ),
    );
    leaving.abort();
    await assert.rejects(asked);
    // The file is there, and empty, a moment before it is written.
    await eventually("the signal", async () => (await readFile(file, "utf8").catch(() => "")) === "aborted");
  });

  test("is also compared in what it says about the next step", TIMEOUT, async () => {
    const asking = (text: string) =>
      monikerFile("asking", "0", {
        more: `step: ({ step, state }: any) =>
    ({ step, next_step: "1", state, wait: {}, ask: { text: "${text}", choices: [{ value: "yes" }] }, once: false, done: false }),`,
      });
    await files.write({ "asking.ts": asking("Really?") });
    await api.post("/api/monikers/reload");
    const { session_id } = await api.create("asking");
    await eventually("the question", async () => (await api.session(session_id)).status === "waiting");
    assert.deepEqual((await rerun(session_id, 0)).differences, []);
    await files.write({ "asking.ts": asking("Are you sure?") });
    await api.post("/api/monikers/reload");
    assert.deepEqual((await rerun(session_id, 0)).differences, ["ask"]);
  });

  test("can use a model that is not the configured one, and counts its tokens", TIMEOUT, async () => {
    const { session_id } = await api.create("joke", { params: { subject: "tea" }, options: { max_steps: 1 } });
    await eventually("the joke", async () => (await api.session(session_id)).status === "stopped");
    assert.deepEqual((await rerun(session_id, 0)).differences, []);
    model.will(reply(JSON.stringify({ text: "Tea, said the model." })));
    const again = await rerun(session_id, 0, { model: "openai/test" });
    assert.deepEqual([again.frame?.text, again.differences], ["Tea, said the model.", ["state", "text"]]);
    assert.ok(again.tokens_used > 0);
    const problem = problemOf(await api.post(path(session_id, 0), { model: "nobody/x" }), 400);
    assert.deepEqual(
      problem.errors?.map((error) => error.path),
      ["model"],
    );
  });

  test("that is not there is 404, and what is no request is 400", TIMEOUT, async () => {
    const session_id = await added(1);
    problemOf(await api.post(path("nobody", 0)), 404);
    problemOf(await api.post(path(session_id, 1)), 404);
    for (const wrong of [{ state: 1 }, { state: [] }, { model: 1 }] as JsonObject[])
      problemOf(await api.post(path(session_id, 0), wrong), 400);
    problemOf(await api.post(`/api/sessions/${session_id}/steps/-1/rerun`), 400);
    problemOf(await api.post(`/api/sessions/${session_id}/steps/first/rerun`), 400);
  });

  test("everstep rerun and replay print what differs on changed code", TIMEOUT, async () => {
    const { session_id: counting } = await api.create("count", { params: { to: 3 } });
    await eventually("the end", async () => (await api.session(counting)).status === "done");
    const same = await everstep(["replay", counting, "--url", server.url]);
    assert.deepEqual([same.code, same.stderr], [0, ""]);
    assert.match(same.stdout, /#0 .*the same[^]*#3 .*the same[^]*4 steps rerun, 0 differ/);
    const session_id = await added(1, 2, 3);
    await files.write({ "adder.ts": adder(2) });
    await api.post("/api/monikers/reload");
    const once = await everstep(["rerun", session_id, "1", "--url", server.url]);
    assert.equal(once.code, 0, once.stderr);
    assert.match(once.stdout, /^6\ndiffers in text, data/);
    const whole = await everstep(["replay", session_id, "--from", "1", "--to", "2", "--url", server.url]);
    assert.equal(whole.code, 1);
    assert.match(
      whole.stdout,
      /#1 1: differs in text, data[^]*- text: 3\n {2}\+ text: 6\n[^]*#2 2: [^]*- text: 6\n {2}\+ text: 12\n/,
    );
    assert.match(whole.stdout, /2 steps rerun, 2 differ; nothing was written/);
    const json = await everstep(["replay", session_id, "--json", "--url", server.url]);
    assert.deepEqual(
      json.stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { iteration: number }).iteration),
      [0, 1, 2],
    );
    assert.equal((await everstep(["rerun", session_id, "x", "--url", server.url])).code, 2);
  });
});
