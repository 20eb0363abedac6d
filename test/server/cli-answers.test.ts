import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api } from "./api.ts";
import { commandFor } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const run = commandFor(() => world().server.url);

const asking = async (ask: JsonObject): Promise<string> => {
  const frame = { step: "0", next_step: "1", state: {}, done: false };
  const frames = [
    { ...frame, ask },
    { ...frame, done: true },
  ];
  const { session_id } = await world().api.create("script", { params: { frames } });
  await world().status(session_id, "waiting");
  return session_id;
};

const answerOf = async (session_id: string): Promise<unknown> => {
  await world().status(session_id, "done");
  const [, step] = await world().api.steps(session_id);
  const [guidance] = (step?.guidance ?? []) as JsonObject[];
  return guidance?.["answer"];
};

describe("everstep inbox and answer", () => {
  test("a question is listed with its choices, and answered by number, with who answered", TIMEOUT, async () => {
    const choices: JsonObject[] = [{ value: "yes", label: "Deploy it" }, { value: "no" }];
    const session_id = await asking({ text: "Deploy to production?", choices });
    const { stdout } = await run("inbox");
    assert.match(stdout, new RegExp(`${session_id} {2}.+ \\(script\\), waiting`));
    assert.match(stdout, / {2}Deploy to production\?\n {4}1 {2}yes {2}Deploy it\n {4}2 {2}no\n {2}everstep answer/);
    const answered = await run("answer", session_id, "2", "--user", "ann");
    assert.deepEqual([answered.code, answered.stderr], [0, ""]);
    assert.match(answered.stdout, /^answer \S+: ok/);
    assert.equal(await answerOf(session_id), "no");
    assert.ok(!(await run("inbox")).stdout.includes(session_id));
    const again = await run("answer", session_id, "yes");
    assert.equal(again.code, 1);
    assert.match(again.stderr, /has no open question/);
  });

  test("a form is filled by name=value words, plain text needs no quotes", TIMEOUT, async () => {
    const schema = {
      type: "object",
      properties: { days: { type: "integer" }, why: { type: "string" } },
      required: ["days"],
    };
    const form = await asking({ text: "How long?", schema });
    const wrong = await run("answer", form, "days=many");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /answer\.days/);
    await run("answer", form, "days=3", "why=the", "build", "is=slow");
    assert.deepEqual(await answerOf(form), { days: 3, why: "the build is=slow" });
    const plain = await asking({ text: "Anything else?" });
    await run("answer", plain, "not", "today");
    assert.equal(await answerOf(plain), "not today");
  });

  test("says so where nothing needs a person", TIMEOUT, async () => {
    const { stdout } = await run("inbox", "--agent", "nobody-has-this-name");
    assert.equal(stdout, "nothing needs you\n");
  });
});

test("everstep release lets sessions continue that were held at the start", TIMEOUT, async () => {
  await using scratch = await scratchFolder();
  const store = { EVERSTEP_STORE: `lancedb:${scratch.path}/data` };
  const session_ids = ["one", "two", "three"];
  {
    await using server = await ServerProcess.start(store);
    const api = new Api(server.url);
    for (const session_id of session_ids)
      await api.create("count", {
        session_id,
        agent_id: `agent-${session_id}`,
        params: { to: 1_000_000, delay_ms: 50 },
      });
    for (const id of session_ids) await eventually("it has begun", async () => (await api.session(id)).iteration >= 0);
    await server.stop();
  }
  await using server = await ServerProcess.start({ ...store, EVERSTEP_START_HELD: "1" });
  const api = new Api(server.url);
  const command = commandFor(() => server.url);
  const iterations = (): Promise<number[]> =>
    Promise.all(session_ids.map(async (id) => (await api.session(id)).iteration));
  const before = await iterations();
  const goesOn = (at: number): Promise<true> =>
    eventually("it goes on", async () => ((await iterations())[at] as number) > (before[at] as number) + 1);
  const usage = await command("release");
  assert.deepEqual([usage.code, usage.stderr.includes("--all")], [2, true]);
  assert.equal((await command("release", "one")).stdout, "released 1 session\n");
  await goesOn(0);
  assert.deepEqual((await iterations()).slice(1), before.slice(1), "the others are still held");
  assert.equal((await command("release", "--agent", "agent-two")).stdout, "released 1 session\n");
  await goesOn(1);
  assert.equal((await command("release", "--all", "--json")).stdout, '{"released":1}\n');
  await goesOn(2);
});
