import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import { SESSION_STATUSES } from "../../src/domain/session.ts";
import { Pool } from "../../src/store/postgres/connections.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { ListUpkeep, UPKEEP_TUNING } from "../../src/store/postgres/session-lists.ts";
import type { Store } from "../../src/store/store.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { advance, aSession, mustAdvance, mustCommit, mustCreate } from "./fixtures.ts";

const PAGE = { limit: 50, offset: 0 };

/** A store that leaves its upkeep to the test. */
async function home() {
  const { url, remove } = await postgresHome();
  const store = await openPostgresStore({ url, tuning: { upkeep_ms: 3_600_000 } });
  const pool = new Pool(url, 4);
  const left = async (): Promise<unknown> =>
    (
      await pool.query(
        "select (select count(*) from session_count_changes) as changes, (select count(*) from session_search_stale) as stale",
      )
    )[0];
  return {
    store,
    pool,
    left,
    upkeep: () => new ListUpkeep(pool, UPKEEP_TUNING).run(),
    async [Symbol.asyncDispose]() {
      await pool.close();
      await store.close();
      await remove();
    },
  };
}

const insert = (first: number, last: number, values = "'running', '\"a text\"'"): string =>
  `insert into agent_state (session_id, agent_id, moniker, params, options, status, result, iteration, next_step_token,
     pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context)
   select 'made ' || n, 'agent ' || n % 3, 'count', '{}', '{}', ${values}, -1, 'token', '[]', '[]', 0, 'action', now(), now(), '{}'
   from generate_series(${first}, ${last}) n`;

await onPostgres(() => {
  test("lists and counts are the same before, during and after upkeep", async () => {
    await using it = await home();
    const { store } = it;
    const owned = await Promise.all(
      Array.from({ length: 30 }, (_, at) => mustCreate(store, aSession({ agent_id: `a${at % 3}` }))),
    );
    const look = async () => ({
      all: await store.summarizeSessions(PAGE),
      said: await store.summarizeSessions({ ...PAGE, q: "STÉP 0" }),
      agent: await store.summarizeSessions({ ...PAGE, agent_id: "a1", moniker: "count" }),
      agents: await store.listAgents(PAGE),
    });
    for (const one of owned.slice(0, 10)) await mustAdvance(store, one);
    const before = await look();
    assert.deepEqual([before.all.total, before.said.total, before.agent.total], [30, 10, 10]);
    await it.upkeep();
    assert.deepEqual(await it.left(), { changes: 0, stale: 0 });
    assert.deepEqual(await look(), before);
    // Some are updated afterwards: their texts and counts are not in the tables yet.
    for (const one of owned.slice(10, 20)) await mustAdvance(store, one);
    const between = await look();
    assert.deepEqual([between.all.total, between.said.total], [30, 20]);
    await it.upkeep();
    assert.deepEqual(await look(), between);
  });

  test("what a program of an earlier version writes is counted and found", async () => {
    await using it = await home();
    const { store, pool } = it;
    await pool.query(insert(1, 9));
    await it.upkeep();
    await pool.query("update agent_state set status = 'done', result = '\"Another one\"' where session_id = 'made 4'");
    for (const _ of ["read from the row", "read from the index"]) {
      const { sessions, counts } = await store.summarizeSessions({ ...PAGE, q: "another" });
      assert.deepEqual([sessions[0]?.session_id, sessions.length, counts.done], ["made 4", 1, 1]);
      assert.deepEqual((await store.counts()).sessions, { ...none(), running: 8, done: 1 });
      await it.upkeep();
    }
    await pool.query("delete from agent_state where agent_id = 'agent 1'");
    assert.deepEqual((await store.counts()).sessions, { ...none(), running: 6 });
    await it.upkeep();
    assert.equal((await store.summarizeSessions({ ...PAGE, q: "text" })).total, 6);
    assert.deepEqual(
      (await store.listAgents(PAGE)).map(({ agent_id, session_count }) => `${agent_id}: ${session_count}`),
      ["agent 0: 3", "agent 2: 3"],
    );
    assert.equal((await pool.query("select 1 from session_counts where count = 0")).length, 0);
  });

  test("if very many match, pages are right and the total is marked as not counted", async () => {
    await using it = await home();
    const { store, pool } = it;
    await pool.query(insert(1, 6000, "case when n % 500 = 0 then 'error' else 'done' end, to_jsonb('number ' || n)"));
    await it.upkeep();
    await pool.query("update agent_state set result = '\"changed\"' where session_id = 'made 5999'");
    await pool.query("update agent_state set result = '\"another number\"' where session_id = 'made 5997'");
    const many = await store.summarizeSessions({ limit: 3, offset: 1, q: "numb" });
    assert.deepEqual(idsOf(many), ["made 5998", "made 5997", "made 5996"]);
    assert.deepEqual([many.exact, many.total], [false, 5]);
    const [last] = many.sessions.slice(-1);
    assert.ok(last);
    const after = { session_id: last.session_id, at: last.created_at };
    assert.deepEqual(idsOf(await store.summarizeSessions({ limit: 1, offset: 0, q: "numb", after })), ["made 5995"]);
    const failed = await store.summarizeSessions({ limit: 2, offset: 0, q: "numb", statuses: ["error"] });
    assert.deepEqual([idsOf(failed), failed.total], [["made 6000", "made 5500"], 3]);
    const few = await store.summarizeSessions({ ...PAGE, q: "number 499" });
    assert.deepEqual([few.exact, few.total, few.counts.done], [true, 11, 11]);
    assert.deepEqual(idsOf(await store.summarizeSessions({ ...PAGE, q: "changed" })), ["made 5999"]);
  });

  test("sessions that continue while two processes do upkeep are found by their last text", async () => {
    await using it = await home();
    const { store, pool } = it;
    const over = new AbortController();
    const upkeep = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await pool.query("update upkeep set until = '-infinity'");
        await it.upkeep();
      }
    };
    const both = [upkeep(), upkeep()];
    const words = await Promise.all(
      Array.from({ length: 10 }, async () => {
        let owned = await mustCreate(store, aSession());
        let word = "";
        for (let step = 0; step < 20; step++) {
          word = newId();
          owned = (await mustAdvance(store, owned, { text: word })).owned;
          assert.equal((await store.summarizeSessions({ ...PAGE, q: word })).sessions[0]?.text, word);
        }
        await mustCommit(store, advance(owned, { text: word, session: { status: "done" } }).batch);
        return word;
      }),
    );
    over.abort();
    await Promise.all(both);
    await it.upkeep();
    assert.deepEqual((await store.counts()).sessions, { ...none(), done: 10 });
    for (const word of words) assert.equal((await store.summarizeSessions({ ...PAGE, q: word })).total, 1);
  });
});

const none = () => Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0]));
const idsOf = ({ sessions }: Awaited<ReturnType<Store["summarizeSessions"]>>): string[] =>
  sessions.map(({ session_id }) => session_id);
