import assert from "node:assert/strict";
import { test } from "node:test";
import { addGuidance } from "../../src/actions/add-guidance.ts";
import { GuidanceLimit } from "../../src/actions/guidance-limit.ts";
import { SessionRegistry } from "../../src/sessions/registry.ts";
import { StepSlots } from "../../src/sessions/step-slots.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { anAction, aSession, mustCommit, settled, WORKER } from "../store/fixtures.ts";
import { embeddedHome } from "./embedded-home.ts";
import { HeldSteps } from "./held-steps.ts";
import { TIMEOUT } from "./runtime-fixture.ts";

/** A real store whose claim of free sessions answers when the test says so: the rows are old by then. */
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

test("a runner of an ownership that was lost ends when the session is claimed again", TIMEOUT, async () => {
  const home = await embeddedHome();
  const store = await openStore(home.url);
  const held = new HeldSteps();
  const session = aSession({ moniker: "held" });
  const { session_id } = session;
  await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
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
  await store.close();
  await home.remove();
});
