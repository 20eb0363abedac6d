import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addGuidance } from "../../src/actions/add-guidance.ts";
import { GuidanceLimit } from "../../src/actions/guidance-limit.ts";
import { changeStatus, type Session } from "../../src/domain/session.ts";
import { SessionRegistry } from "../../src/sessions/registry.ts";
import { StepSlots } from "../../src/sessions/step-slots.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Batch, OwnedSession, Store } from "../../src/store/store.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { anAction, aSession, mustCommit, settled, WORKER } from "../store/fixtures.ts";
import { embeddedHome } from "./embedded-home.ts";
import { failingStore } from "./failing-store.ts";
import { HeldSteps } from "./held-steps.ts";
import { TIMEOUT } from "./runtime-fixture.ts";

/** A real store whose claim of free sessions returns when the test says so: its rows are outdated by then. */
async function slowClaims(): Promise<{
  store: Store;
  claimed: Promise<void>;
  answer: () => void;
  end: () => Promise<void>;
}> {
  const home = await embeddedHome();
  const store = await openStore(home.url);
  const claimed = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const claimSessions = async (claim: Parameters<Store["claimSessions"]>[0]): Promise<OwnedSession[]> => {
    const owned = await store.claimSessions(claim);
    if (owned.length === 0) return owned;
    const rows = structuredClone(owned);
    claimed.resolve();
    await answered.promise;
    return rows;
  };
  const slow = new Proxy(store, {
    get(target, name) {
      if (name === "claimSessions") return claimSessions;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const end = async () => {
    await store.close();
    await home.remove();
  };
  return { store: slow, claimed: claimed.promise, answer: answered.resolve, end };
}

/** A store with one session that nobody owns. */
async function storeWithSession() {
  const home = await embeddedHome();
  const store = await openStore(home.url);
  const session = aSession({ moniker: "held" });
  await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
  const end = async () => {
    await store.close();
    await home.remove();
  };
  return { store, held: new HeldSteps(), session_id: session.session_id, end };
}

function newRegistry(store: Store, held: HeldSteps): SessionRegistry {
  return new SessionRegistry(WORKER, new Map(held.monikers.map((moniker) => [moniker.name, moniker])), {
    store,
    slots: new StepSlots(10),
    probation: new StepSlots(1),
    llm: () => null,
    tools: new ToolRegistry({ workspace: "/nowhere", servers: [] }).forStep,
    keep_calls: true,
    watch: () => () => {},
    onDelta() {},
    observer: { stepCommitted() {}, committed() {}, retried() {} },
    limit: new GuidanceLimit(store),
    hold: { holds: () => false },
    prepareActions: () => Promise.reject(new Error("no frame has actions here")),
    destroy_grace_ms: 0,
  });
}

test("guidance taken in while a claim of many sessions loads their states is in the next step", TIMEOUT, async () => {
  const { store, claimed, answer, end } = await slowClaims();
  const held = new HeldSteps();
  const session = aSession({ moniker: "held" });
  const { session_id } = session;
  await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
  const registry = newRegistry(store, held);
  const rehydrating = registry.rehydrate();
  await claimed;

  const action = anAction({ session_id, payload: { guidance: "hear me" } });
  await mustCommit(store, { actions: [action] });
  const written = await registry.withRunner(session_id, async (runner) =>
    runner?.change((row) => {
      const outcome = addGuidance(row, action.action_id, "hear me", "next");
      assert.ok(outcome.kind === "ok" && outcome.session);
      return { session: outcome.session, actions: [settled(action)] };
    }),
  );
  assert.equal(written, "committed");
  const first = await held.next(session_id);
  answer();
  await rehydrating;

  first.finish({ state: { n: 1 } });
  const second = await held.next(session_id);
  const [step] = await store.listSteps({ session_id, limit: 10, offset: 0 });
  const heard = [...(step?.guidance ?? []), ...(second.frame.guidance ?? [])];
  assert.deepEqual(heard, ["hear me"]);
  assert.equal(held.started(session_id), 2, "the session has one runner");
  second.finish();
  await registry.stop(0);
  await end();
});

test("a runner of a lost ownership ends when the session is claimed again", TIMEOUT, async () => {
  const { store, held, session_id, end } = await storeWithSession();
  const registry = newRegistry(store, held);
  await registry.rehydrate();
  const lost = await held.next(session_id);
  await store.releaseSessions({ worker: WORKER, session_ids: [session_id] });
  await registry.rehydrate();
  const again = await held.next(session_id);
  assert.ok(lost.context.signal.aborted);
  lost.finish({ text: "too late" });
  again.finish({ text: "in time" });
  await held.next(session_id);
  assert.equal((await store.latestStep({ session_id }))?.text, "in time");
  await registry.stop(0);
  await end();
});

/** The session row that a batch writes. */
const rowIn = ({ sessions }: Batch): Session | undefined => {
  const [write] = sessions ?? [];
  return write?.kind === "update" ? write.session : undefined;
};

describe("the start of a step marked once", () => {
  /** Runs a session whose first step asks for a `once` step; `onResult` is called when that step's result is about to be written. */
  async function reachOnce(
    t: { after(end: () => Promise<void>): void },
    onResult: (registry: SessionRegistry, session_id: string) => void,
  ) {
    const { store, held, session_id, end } = await storeWithSession();
    const rows: Session[] = [];
    const watched = failingStore(store, (batch) => {
      const row = rowIn(batch);
      if (row) rows.push(row);
      if (batch.steps) onResult(registry, session_id);
      return null;
    });
    const registry = newRegistry(watched, held);
    await registry.rehydrate();
    t.after(async () => {
      await registry.stop(0);
      await end();
    });
    (await held.next(session_id)).finish({ once: true });
    return { held, registry, rows, session_id, stored: async () => (await store.getSession(session_id)) as Session };
  }

  test("is written with the result of the step before", TIMEOUT, async (t) => {
    const { held, rows, session_id } = await reachOnce(t, () => {});
    const { context } = await held.next(session_id);
    assert.deepEqual(context.attempt, { number: 1, after: null });
    assert.deepEqual(
      rows.map(({ iteration, started_attempt }) => ({ iteration, begun: started_attempt?.begun })),
      [{ iteration: 0, begun: 1 }],
    );
  });

  test("is taken back by a pause that comes before it runs, and written when it does", TIMEOUT, async (t) => {
    const changed = Promise.withResolvers<unknown>();
    const { held, registry, rows, session_id, stored } = await reachOnce(t, (runners, id) => {
      const runner = runners.peek(id);
      // The result is being written, so this comes right after it.
      if (runner?.session.status === "running" && runner.session.iteration < 0)
        changed.resolve(runner.change((row) => ({ session: changeStatus(row, "paused") })));
    });
    assert.equal(await changed.promise, "committed");
    await registry.peek(session_id)?.quiet();
    const paused = await stored();
    assert.deepEqual(paused.started_attempt, { iteration: 1, attempts: 0, once: true });
    assert.equal(paused.step_started_at, null);
    assert.equal(held.started(session_id), 1, "no step starts after a pause");
    await registry.withRunner(session_id, async (runner) => {
      await runner?.change((row) => ({ session: changeStatus(row, "running") }));
      runner?.wake();
    });
    assert.deepEqual((await held.next(session_id)).context.attempt, { number: 1, after: null });
    assert.equal(rows.at(-1)?.started_attempt?.begun, 1);
  });

  test("is taken back by a process that stops before it runs", TIMEOUT, async (t) => {
    const { held, registry, session_id, stored } = await reachOnce(t, (runners) => runners.stopStarting());
    await registry.stop(0);
    assert.equal(held.started(session_id), 1);
    assert.equal((await stored()).iteration, 0);
    assert.deepEqual((await stored()).started_attempt, { iteration: 1, attempts: 0, once: true });
  });
});
