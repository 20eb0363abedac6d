import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Action } from "../../../src/domain/action.ts";
import type { Message } from "../../../src/domain/conversation.ts";
import type { Step } from "../../../src/domain/step.ts";
import { repetitions } from "../../repetitions.ts";
import { scratchFolder } from "../../store/scratch-folder.ts";
import { reportedRandom, type SeededRandom } from "../../store/seeded-random.ts";
import { type MakeHome, type StoreHome, World } from "../runtime-fixture.ts";
import { RuntimeProcess } from "../runtime-process.ts";

const ROUNDS = repetitions("EVERSTEP_CRASH_ROUNDS", { few: 6, many: 30 });
/** Enough to have work left until the last kill. */
const SESSIONS = Math.max(20, Math.ceil(ROUNDS * 3.4));
/** So few concurrent steps that the work lasts for all kills. */
const STEPS_AT_ONCE = 4;
const STEPS_PER_ROUND = 90;
/** If all sessions of a round are paused or done, no step arrives, however long it waits. */
const MOST_REQUESTS = 100;
const LARGE_BYTES = 300_000;
const CONVERSATION = "all-of-them";

const sessionId = (index: number): string => `session-${index}`;
/** Sessions count to different numbers, in steps of 1 to 5 milliseconds; a few have a large state. */
const paramsOf = (index: number) => ({
  to: 25 + (index % 11),
  delay_ms: 1 + (index % 5),
  ...(index % 20 === 7 ? { payload_bytes: LARGE_BYTES } : {}),
});
const creation = (index: number): object => ({
  action_type: "agent_create",
  agent_id: `agent-${index % 10}`,
  session_id: sessionId(index),
  payload: {
    moniker: "count",
    params: paramsOf(index),
    ...(index % 2 === 0 ? { conversation_id: CONVERSATION } : {}),
  },
});

/** Repeatedly kills a runtime while it works and receives requests, then checks what is left. */
export function crash(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name} under SIGKILL`, () => {
    test(`loses, duplicates and skips nothing in ${ROUNDS} kills`, { timeout: 180_000 }, async (t) => {
      const random = reportedRandom(t, "EVERSTEP_CRASH_SEED");
      const home = await makeHome();
      await prepare(home);
      const accepted: string[] = [];
      for (let round = 0; round < ROUNDS; round += 1) accepted.push(...(await killedRound(home, random, round)));
      t.diagnostic(`${accepted.length} actions were accepted`);
      assert.ok(accepted.length > ROUNDS, "so few requests were accepted that nothing was tried");
      await using world = await World.open(async () => home);
      const { running, done } = (await world.store.counts()).sessions;
      t.diagnostic(`after the last kill ${running} sessions were running and ${done} were done`);
      await finish(world);
      const messages = await world.store.listMessages({ conversation_id: CONVERSATION, limit: 10_000, offset: 0 });
      for (let index = 0; index < SESSIONS; index += 1) await verifySession(world, index, messages);
      for (const action_id of accepted) await verifyEnded(world, await world.store.getAction(action_id), action_id);
    });
  });
}

/** Creates the sessions before the first kill, except some that each round requests again. */
async function prepare(home: StoreHome): Promise<void> {
  await using world = await World.open(async () => ({ url: home.url, remove: async () => {} }));
  await world.conversation(CONVERSATION);
  await world.runtime.stop();
  for (let index = 0; index < SESSIONS; index += 1) await world.submit(creation(index));
}

/** Resolves with the actions that were accepted before the kill. */
async function killedRound(home: StoreHome, random: SeededRandom, round: number): Promise<string[]> {
  await using workspace = await scratchFolder();
  await using child = new RuntimeProcess({
    url: home.url,
    workspace: workspace.path,
    max_running_steps: STEPS_AT_ONCE,
  });
  // One kill in six hits the start.
  if (round % 6 === 5) await pause(random.integer(600));
  else {
    await child.ready();
    const enough = random.integer(2 * STEPS_PER_ROUND);
    for (let sent = 0; child.steps < enough && sent < MOST_REQUESTS; sent += 1) {
      child.send(randomRequest(random));
      await pause(1 + random.integer(8));
    }
  }
  await child.kill();
  return child.accepted;
}

function randomRequest(random: SeededRandom): object {
  const index = random.integer(SESSIONS);
  const session_id = sessionId(index);
  const guidance = `word ${random.integer(1e9)}`;
  switch (random.integer(10)) {
    case 0:
      return { action_type: "agent_pause", session_id };
    case 1:
    case 2:
      return { action_type: "agent_resume", session_id };
    case 3:
      return creation(index);
    case 4:
      return { action_type: "agent_interrupt", session_id, payload: { guidance, mode: "now" } };
    case 5:
      return {
        action_type: "agent_fork",
        session_id,
        payload: { iteration: 0, session_id: `fork-${index}`, guidance },
      };
    default:
      return { action_type: "agent_input", session_id, payload: { text: guidance }, urgency: random.integer(3) };
  }
}

/** Lets every session end, including forks and those paused last. */
async function finish(world: World): Promise<void> {
  const unprocessed = await world.store.listActions({ processed: false, limit: 500, offset: 0 });
  await Promise.all(unprocessed.map(({ action_id }) => world.settled(action_id)));
  for (const { session_id } of await world.store.listSessions({ limit: 500, offset: 0 })) {
    const session = await world.untilStatus(session_id, "paused", "done", "error");
    assert.notEqual(session.status, "error", session.last_error ?? "");
    if (session.status === "paused") await world.act("agent_resume", session_id);
    await world.untilStatus(session_id, "done");
  }
}

async function verifySession(world: World, index: number, messages: Message[]): Promise<void> {
  const session_id = sessionId(index);
  const steps = await world.steps(session_id);
  const { to } = paramsOf(index);
  assert.deepEqual(
    steps.map(({ iteration, text, state, status }) => [iteration, text, state["n"], status]),
    Array.from({ length: to + 1 }, (_, n) => [n, String(n), n, "ok"]),
    `iterations of ${session_id} have no gap and no repeat`,
  );
  for (const [at, step] of steps.slice(1).entries()) assert.equal(step.step_token, steps[at]?.next_step_token);
  const own = messages.filter((message) => message.session_id === session_id).map(({ text }) => text);
  assert.deepEqual(own, index % 2 === 0 ? steps.map(({ text }) => text) : [], `what ${session_id} said`);
  await verifyGuidance(world, session_id, steps);
}

/** Everything a step used came from one action, whose receipt names that step; no action is used twice. */
async function verifyGuidance(world: World, session_id: string, steps: Step[]): Promise<void> {
  const actions = new Map((await world.actions(session_id)).map((action) => [action.action_id, action]));
  const used = new Set<string>();
  for (const { action_ids, guidance, iteration } of steps) {
    assert.equal(action_ids.length, guidance.length);
    for (const [at, action_id] of action_ids.entries()) {
      const action = actions.get(action_id);
      assert.deepEqual([action?.receipt, action?.consumed_iteration], ["consumed", iteration]);
      const { payload } = action as Action;
      assert.deepEqual(guidance[at], payload["guidance"] ?? { text: payload["text"] });
      assert.ok(!used.has(action_id), `${action_id} was used twice`);
      used.add(action_id);
    }
  }
  for (const action of actions.values()) {
    assert.equal(action.processed, true);
    assert.equal(action.receipt === "consumed", used.has(action.action_id), "what was consumed is in a step");
  }
}

async function verifyEnded(world: World, action: Action | null, action_id: string): Promise<void> {
  assert.ok(action, `the accepted action ${action_id} is lost`);
  assert.equal(action.processed, true, `the accepted action ${action_id} never ended`);
  assert.notEqual(action.outcome, "failed", action.error ?? "");
  if (action.action_type !== "agent_interrupt" && action.action_type !== "agent_input") return;
  assert.ok(action.receipt === "consumed" || action.receipt === "bounced", `${action.receipt} is no end of guidance`);
  const session = await world.session(action.session_id);
  if (action.receipt === "bounced") assert.equal(session.status, "done");
}
