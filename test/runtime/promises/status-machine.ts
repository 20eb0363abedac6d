import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SESSION_STATUSES, type SessionStatus, STATUS_CHANGES } from "../../../src/domain/session.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { aSession, mustCommit } from "../../store/fixtures.ts";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

const never = (): StepError => new StepError("no", "never", { retryable: false });

/** Each takes one session through some status changes. */
const LIVES: Record<string, (world: World) => Promise<string>> = {
  "runs, is paused and resumed, and is done": async (world) => {
    const session_id = await world.create("held_finite");
    const step = await world.held.next(session_id);
    await world.do("agent_pause", session_id);
    await world.do("agent_resume", session_id);
    step.finish({ done: true });
    await world.untilStatus(session_id, "done");
    return session_id;
  },
  "is done by the step that a pause kept": async (world) => {
    const session_id = await world.create("held_finite");
    const step = await world.held.next(session_id);
    await world.do("agent_pause", session_id);
    step.finish({ done: true });
    await world.untilStatus(session_id, "done");
    return session_id;
  },
  "reaches a limit by the step that a pause kept, and is resumed": async (world) => {
    const session_id = await world.create("held", { options: { max_steps: 1 } });
    const step = await world.held.next(session_id);
    await world.do("agent_pause", session_id);
    step.finish();
    await world.untilStatus(session_id, "stopped");
    await world.do("agent_resume", session_id, { options: { max_steps: 5 } });
    await world.held.next(session_id);
    return session_id;
  },
  "fails by the step that a pause kept, is resumed, fails and is destroyed": async (world) => {
    const session_id = await world.create("held");
    const step = await world.held.next(session_id);
    await world.do("agent_pause", session_id);
    step.fail(never());
    await world.untilStatus(session_id, "error");
    await world.do("agent_resume", session_id);
    (await world.held.next(session_id)).fail(never());
    await world.untilStatus(session_id, "error");
    await world.do("agent_destroy", session_id);
    await world.untilStatus(session_id, "stopped");
    return session_id;
  },
  "waits, is told something, waits again, is paused, resumed and destroyed": async (world) => {
    const session_id = await world.create("held_reactive");
    await world.tell(session_id, "hello");
    (await world.held.next(session_id)).finish();
    await world.untilStatus(session_id, "waiting");
    await world.do("agent_pause", session_id);
    await world.do("agent_resume", session_id);
    await world.do("agent_destroy", session_id);
    await world.untilStatus(session_id, "stopped");
    return session_id;
  },
  "is paused and destroyed": async (world) => {
    const session_id = await world.create("held_reactive");
    await world.do("agent_pause", session_id);
    await world.do("agent_destroy", session_id);
    await world.untilStatus(session_id, "stopped");
    return session_id;
  },
  "failed before it was told anything, and waits once it is resumed": async (world) => {
    const session = aSession({ moniker: "held_reactive", status: "error" });
    const { session_id } = session;
    await mustCommit(world.store, { sessions: [{ kind: "create", session, worker: null }] });
    await world.do("agent_resume", session_id);
    return session_id;
  },
  "is destroyed while it runs": async (world) => {
    const session_id = await world.create("held");
    await world.held.next(session_id);
    await world.do("agent_destroy", session_id);
    await world.untilStatus(session_id, "stopped");
    return session_id;
  },
  "reaches a limit as it answers, and waits after it was lifted": async (world) => {
    const session_id = await world.create("held_reactive", { options: { max_steps: 1 } });
    await world.tell(session_id, "hello");
    (await world.held.next(session_id)).finish();
    await world.untilStatus(session_id, "stopped");
    await world.do("agent_resume", session_id, { options: { max_steps: 5 } });
    await world.untilStatus(session_id, "waiting");
    return session_id;
  },
};

export function statusMachine(makeHome: MakeHome): void {
  describe("the status of a session", () => {
    test("makes every change of the table, and no other", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const seen = await changesDuring(world, async () => {
        for (const live of Object.values(LIVES)) await live(world);
      });
      const table = SESSION_STATUSES.flatMap((from) => STATUS_CHANGES[from].map((to) => `${from} → ${to}`));
      const missing = table.filter((change) => !seen.has(change));
      const forbidden = [...seen].filter((change) => !table.includes(change));
      assert.deepEqual({ missing, forbidden }, { missing: [], forbidden: [] });
    });
  });
}

/** Every status change committed during `work`. Followers see only the newest row, so this watches the writes. */
async function changesDuring(world: World, work: () => Promise<void>): Promise<Set<string>> {
  const seen = new Set<string>();
  const last = new Map<string, SessionStatus>();
  const commit = world.store.commit.bind(world.store);
  world.store.commit = async (batch) => {
    const outcome = await commit(batch);
    if (outcome.kind !== "committed") return outcome;
    for (const { session } of batch.sessions ?? []) {
      const before = last.get(session.session_id) ?? session.status;
      if (before !== session.status) seen.add(`${before} → ${session.status}`);
      last.set(session.session_id, session.status);
    }
    return outcome;
  };
  await work();
  await world.meanwhile();
  return seen;
}
