import assert from "node:assert/strict";
import { test } from "node:test";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { type AdvanceChoices, advance, mustCreate } from "./fixtures.ts";

/** Each gives a column of a step or of its session a value, where an ordinary step has none or the default. */
const COLUMNS: readonly AdvanceChoices[] = [
  { step: { text: null } },
  { step: { data: { a: 'quoted " and \\ and , and {}', b: null } } },
  { step: { notes: "NULL" } },
  { step: { tokens_used: 7, cost_usd: 0.25 } },
  { step: { moniker_version: "v1" } },
  { step: { attempts: 3, crashes: 1 } },
  { step: { state: { n: 1, text: "x".repeat(500) } } },
  { session: { result: null } },
  { session: { pending_guidance: [{ text: "more" }], pending_action_ids: ["one"] } },
  {
    session: {
      started_attempt: { iteration: 4, attempts: 0, once: true, begun: 1 },
      step_started_at: "2026-11-18T20:00:00.123Z",
    },
  },
];

/** One combination of columns for each number. */
function choicesOf(number: number): AdvanceChoices {
  const chosen = COLUMNS.filter((_, at) => (number >> at) & 1);
  return {
    step: Object.assign({}, ...chosen.map(({ step }) => step)),
    session: Object.assign({}, ...chosen.map(({ session }) => session)),
  };
}

async function advanceAll(store: Store, owned: readonly OwnedSession[], numbers: readonly number[]) {
  const advances = owned.map((one, at) => advance(one, choicesOf(numbers[at] as number)));
  const outcomes = await Promise.all(advances.map(({ batch }) => store.commit(batch)));
  for (const outcome of outcomes) assert.deepEqual(outcome, { kind: "committed" });
  return advances;
}

await onPostgres(() => {
  test("steps keep every combination of columns, alone and in groups of the like and the unlike", async (t) => {
    const { url, remove } = await postgresHome();
    const store = await openPostgresStore({ url });
    t.after(async () => {
      await store.close();
      await remove();
    });
    const SESSIONS = 20;
    let owned = await Promise.all(Array.from({ length: SESSIONS }, () => mustCreate(store)));
    const all = 2 ** COLUMNS.length;
    const rounds = [
      ...Array.from({ length: 40 }, (_, round) => owned.map(() => (round * 37) % all)),
      ...Array.from({ length: 10 }, (_, round) => owned.map((__, at) => (round * 101 + at * 53) % all)),
      owned.map(() => 0),
    ];
    const steps = new Map(owned.map(({ session }) => [session.session_id, [] as unknown[]]));
    for (const numbers of rounds) {
      const advances = await advanceAll(store, owned, numbers);
      owned = advances.map((one) => one.owned);
      for (const { step } of advances) steps.get(step.session_id)?.push(step);
    }
    for (let number = 0; number < all; number += 11) {
      const [alone, ...others] = owned as [OwnedSession, ...OwnedSession[]];
      const [advanced] = await advanceAll(store, [alone], [number]);
      assert.ok(advanced);
      owned = [advanced.owned, ...others];
      steps.get(advanced.step.session_id)?.push(advanced.step);
    }
    for (const { session } of owned) {
      const { session_id } = session;
      assert.deepEqual(await store.listSteps({ session_id, limit: 1_000, offset: 0 }), steps.get(session_id));
      assert.deepEqual(await store.getSession(session_id), session);
    }
  });

  test("of a group of steps only those of a former owner are refused", async (t) => {
    const { url, remove } = await postgresHome();
    const store = await openPostgresStore({ url });
    t.after(async () => {
      await store.close();
      await remove();
    });
    const owned = await Promise.all(Array.from({ length: 12 }, () => mustCreate(store)));
    const taken = new Set(owned.filter((_, at) => at % 3 === 0).map(({ session }) => session.session_id));
    for (const id of taken)
      await administer(url, `update agent_state set node_no = null, epoch = epoch + 1 where session_id = '${id}'`);
    const outcomes = await Promise.all(owned.map((one) => store.commit(advance(one).batch)));
    for (const [at, { session }] of owned.entries()) {
      const { session_id } = session;
      const isTaken = taken.has(session_id);
      assert.deepEqual(outcomes[at], isTaken ? { kind: "fenced", session_id } : { kind: "committed" });
      assert.equal((await store.listSteps({ session_id, limit: 10, offset: 0 })).length, isTaken ? 0 : 1);
    }
  });
});
