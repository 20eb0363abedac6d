import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import { repetitions } from "../repetitions.ts";
import { randomFor } from "../store/random.ts";
import { Api, pathOf, read, SHAPES } from "./api.ts";
import { Clients, COUNT_TO, type Ledger } from "./crash-load.ts";
import { eventually, ServerProcess } from "./server-fixture.ts";

const KILLS = repetitions("EVERSTEP_CRASH_KILLS", { few: 2, many: 20 });

describe("a server that is killed under load", () => {
  test(`keeps every acknowledged promise exactly once, over ${KILLS} kills`, {
    timeout: 60_000 + KILLS * 20_000,
  }, async (context) => {
    const random = randomFor(context);
    await using server = await ServerProcess.start();
    const clients = new Clients(server.url, random);
    const { ledger } = clients;
    await clients.prepare();
    clients.start();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = ledger.answers;
      await eventually("clients are answered", async () => ledger.answers > before + 100);
      await wait(random.below(200));
      await server.kill();
      await server.start();
    }
    await clients.stop();
    context.diagnostic(`${ledger.answers} answers, ${ledger.lost_answers} lost ones`);
    assert.ok(ledger.lost_answers >= KILLS, "the kills hit requests");
    const api = new Api(server.url);
    await quiet(api);
    await verifyCreations(api, ledger);
    const steps = await verifySessions(api, ledger);
    await verifyWords(api, ledger, steps);
    await verifyConversations(api, ledger, steps);
    for (const [agent_id, subject] of ledger.subjects)
      assert.deepEqual(read(await api.get(pathOf("agents", agent_id, "config")), 200, SHAPES.config).params, {
        subject,
      });
    assert.deepEqual(server.loggedErrors, []);
  });
});

/** Waits until every action is settled and every session rests. */
async function quiet(api: Api): Promise<void> {
  await eventually("quiet", async () => {
    const { queue_depth } = JSON.parse((await api.get("/health")).text) as { queue_depth: number };
    const running = JSON.parse((await api.get("/api/sessions", { status: "running" })).text) as { sessions: unknown[] };
    return queue_depth === 0 && running.sessions.length === 0;
  });
}

async function verifyCreations(api: Api, { created }: Ledger): Promise<void> {
  const actions = await api.all("/api/actions", "actions", SHAPES.action);
  const births = Map.groupBy(
    actions.filter(({ action_type }) => action_type === "agent_create"),
    ({ session_id }) => session_id,
  );
  for (const { body, answer } of created) {
    const session = await api.session(answer.session_id);
    assert.deepEqual(
      [session.agent_id, session.moniker, session.session_id],
      [body["agent_id"], body["moniker"], body["session_id"]],
    );
    const own = births.get(answer.session_id) ?? [];
    assert.deepEqual(
      own.map(({ action_id, outcome }) => [action_id, outcome]),
      [[answer.action_id, "ok"]],
    );
  }
  assert.ok(actions.every(({ processed, outcome }) => processed && outcome === "ok"));
}

/** Every session's steps: no gap, no repeat, each continuing from the previous one. */
async function verifySessions(api: Api, { created }: Ledger): Promise<Map<string, Step[]>> {
  const all = new Map<string, Step[]>();
  for (const { answer, body } of created) {
    const steps = await api.steps(answer.session_id);
    all.set(answer.session_id, steps);
    for (const [index, step] of steps.entries()) {
      assert.deepEqual([step.iteration, step.status], [index, "ok"]);
      if (index > 0) assert.equal(step.step_token, steps[index - 1]?.next_step_token);
    }
    const { status } = await api.session(answer.session_id);
    if (body["moniker"] === "count") assert.deepEqual([status, steps.length], ["done", COUNT_TO + 1]);
  }
  return all;
}

/** Each acknowledged text was consumed by the step that its receipt names; no text is in two steps. */
async function verifyWords(api: Api, { interrupts }: Ledger, steps: Map<string, Step[]>): Promise<void> {
  for (const { session_id, word, action_id } of interrupts) {
    const using = (steps.get(session_id) ?? []).filter(({ guidance }) => guidance.includes(word));
    const times = (steps.get(session_id) ?? [])
      .flatMap(({ guidance }) => guidance)
      .filter((one) => one === word).length;
    if (action_id === null) assert.ok(times <= 1, `${word} was used ${times} times`);
    else {
      assert.equal(times, 1, `${word} was used ${times} times`);
      const { receipt, consumed_iteration } = await api.action(action_id);
      assert.deepEqual([receipt, consumed_iteration], ["consumed", using[0]?.iteration]);
    }
  }
}

/** Each message exists once and reached both agents once; each of their steps is in the transcript once. */
async function verifyConversations(api: Api, { said, titles }: Ledger, steps: Map<string, Step[]>): Promise<void> {
  for (const [conversation_id, messages] of Map.groupBy(said, (one) => one.conversation_id)) {
    const transcript = await api.messages(conversation_id);
    const agents = [...steps.keys()].filter((session_id) => session_id.endsWith(conversation_id));
    assert.equal(agents.length, 2);
    for (const { message_id, text, action_ids } of messages) {
      assert.deepEqual(
        transcript.filter((row) => row.message_id === message_id).map((row) => [row.text, row.action_ids]),
        [[text, action_ids]],
      );
      assert.equal(action_ids.length, 2);
      for (const session_id of agents) {
        const heard = (steps.get(session_id) ?? []).flatMap(({ guidance }) => guidance);
        assert.equal(
          heard.filter((one) => (one as JsonObject)["message_id"] === message_id).length,
          1,
          `${message_id} in ${session_id}`,
        );
      }
      for (const id of action_ids) assert.equal((await api.action(id)).receipt, "consumed");
    }
    const spoken = transcript.filter(({ sender_type }) => sender_type === "agent");
    const expected = agents.flatMap((session_id) =>
      (steps.get(session_id) ?? []).map(({ iteration }) => `${session_id} ${iteration}`),
    );
    assert.deepEqual(spoken.map(({ session_id, iteration }) => `${session_id} ${iteration}`).sort(), expected.sort());
    const { title } = read(await api.get(pathOf("conversations", conversation_id)), 200, SHAPES.conversation);
    assert.equal(title, titles.get(conversation_id) ?? null);
  }
}
