import assert from "node:assert/strict";
import { test } from "node:test";
import { sessionSchema } from "../../src/domain/session.ts";
import { readMigrations } from "../../src/store/postgres/migrations.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { freePort } from "../free-port.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { mustAdvance, mustCreate, WORKER } from "./fixtures.ts";

await onPostgres(() => {
  test("programs that start at once on an empty database migrate it once, and share it", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    const stores = await Promise.all(Array.from({ length: 5 }, () => openPostgresStore({ url })));
    const [first, second] = stores;
    assert.ok(first && second);
    const owned = await mustCreate(first);
    const { step } = await mustAdvance(first, owned);
    assert.deepEqual(await second.latestStep({ session_id: step.session_id }), step);
    assert.equal((await second.listWorkers()).length, 5);
    for (const store of stores) await store.close();
  });

  test("a schema that a newer version broke is refused, one that it only added to is not", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    await (await openPostgresStore({ url })).close();
    await administer(url, "insert into schema_migrations (number, name, breaking) values (900, 'adds-a-table', false)");
    await (await openPostgresStore({ url })).close();
    await administer(
      url,
      "insert into schema_migrations (number, name, breaking) values (901, 'renames-a-column', true)",
    );
    await assert.rejects(openPostgresStore({ url }), { name: "EverstepError", code: "store_newer" });
  });

  test("what the first version wrote is migrated and goes on", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    const [first] = await readMigrations();
    await administer(url, first?.sql ?? "");
    await administer(
      url,
      `create table schema_migrations (number integer primary key, name text not null, breaking boolean not null,
         applied_at timestamptz not null default now());
       insert into schema_migrations (number, name, breaking) values (1, 'tables', false);
       insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, next_step_token,
           pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context)
         values ('old', 'agent', 'count', '{}', '{}', 'running', -1, 'token', '[]', '[]', 0, 'action', now(), now(), '{"at": 1}'),
           ('asks', 'agent', 'chat', '{}', '{}', 'waiting', 0, 'token', '[]', '[]', 0, 'action', now(), now(), null),
           ('failed', 'agent', 'chat', '{}', '{}', 'error', -1, 'token', '[]', '[]', 0, 'action', now(), now(), '{"question": {"text": "no more"}}');
       update agent_state set base_iteration = 0 where session_id = 'asks';
       insert into agent_steps (session_id, iteration, place, id, created_at, agent_id, step_token, next_step_token, status, state,
           state_kind, base_iteration, guidance, latency_ms, tokens_used, action_ids)
         values ('asks', 0, 2147483647, 'step', now(), 'agent', 'token', 'next', 'ok', '{"question": {"text": "may I?"}}', 'whole', 0, '[]', 1, 0, '[]')`,
    );
    const store = await openPostgresStore({ url });
    t.after(() => store.close());
    const [owned] = await store.claimSessions({ worker: WORKER, limit: 1 });
    assert.deepEqual(owned?.session.context, { at: 1 });
    const needing = await store.summarizeSessions({ needs_person: true, limit: 10, offset: 0 });
    assert.deepEqual(
      needing.sessions.map(({ session_id, question }) => [session_id, question?.text ?? null]),
      [
        ["failed", null],
        ["asks", "may I?"],
      ],
    );
    assert.deepEqual([needing.counts.error, needing.counts.waiting, needing.total], [1, 1, 2]);
    assert.equal((await store.summarizeSessions({ q: "COUNT", limit: 10, offset: 0 })).sessions[0]?.session_id, "old");
    const { step } = await mustAdvance(store, owned);
    assert.deepEqual(await store.latestStep({ session_id: "old" }), step);
  });

  test("a question that an earlier version kept as a text is a whole question, also while that version still writes", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    const before = (await readMigrations()).filter(({ number }) => number < 9);
    for (const { sql } of before) await administer(url, sql);
    await administer(
      url,
      `create table schema_migrations (number integer primary key, name text not null, breaking boolean not null,
         applied_at timestamptz not null default now());
       insert into schema_migrations (number, name, breaking) select n, 'n', false from generate_series(1, ${before.length}) n;
       insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, next_step_token,
           pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context, question)
         values ('asks', 'agent', 'chat', '{}', '{}', 'waiting', 3, 'token', '[]', '[]', 0, 'action', now(), '2026-01-02T03:04:05.678Z',
           '{}', 'may I "now"?')`,
    );
    const store = await openPostgresStore({ url });
    t.after(() => store.close());
    const asks = await store.getSession("asks");
    assert.deepEqual(asks?.question, {
      question_id: "asks.3",
      text: 'may I "now"?',
      choices: null,
      schema: null,
      about: null,
      asked_at: "2026-01-02T03:04:05.678Z",
      iteration: 3,
    });
    assert.ok(asks && sessionSchema.safeParse(asks).success);
    await administer(url, "update agent_state set question = 'plain again' where session_id = 'asks'");
    const [listed] = (await store.summarizeSessions({ needs_person: true, limit: 10, offset: 0 })).sessions;
    assert.deepEqual([listed?.session_id, listed?.question], ["asks", null]);
  });

  test("counts, search and webhooks of a database of before triggers were by column follow its sessions, whichever version writes", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    const before = (await readMigrations()).filter(({ number }) => number < 15);
    for (const { sql } of before) await administer(url, sql);
    await administer(
      url,
      `create table schema_migrations (number integer primary key, name text not null, breaking boolean not null,
         applied_at timestamptz not null default now());
       insert into schema_migrations (number, name, breaking) values ${before.map(({ number }) => `(${number}, 'n', false)`).join(", ")};
       insert into webhooks (webhook_id, url, events, secret, created_at, updated_at)
         values ('hook', 'https://example.test', '["session.asks", "session.ended", "session.failed"]', 'secret', now(), now());
       insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, next_step_token,
           pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context)
         values ('old', 'agent', 'count', '{}', '{}', 'running', -1, 'token', '[]', '[]', 0, 'action', now(), now(), '{}')`,
    );
    const store = await openPostgresStore({ url });
    t.after(() => store.close());
    const snapshot = async () => {
      const { counts, sessions } = await store.summarizeSessions({ q: "said", limit: 10, offset: 0 });
      const deliveries = (await store.webhooks.listDeliveries({ webhook_id: "hook", limit: 10 })) ?? [];
      return {
        counts: (await store.counts()).sessions,
        found: [sessions.length, counts.running],
        events: deliveries.map(({ event }) => event).sort(),
      };
    };
    const none = { running: 0, waiting: 0, paused: 0, stopping: 0, stopped: 0, done: 0, error: 0 };
    const [owned] = await store.claimSessions({ worker: WORKER, limit: 1 });
    assert.ok(owned);
    const step = await mustAdvance(store, owned, { session: { result: "said by this version" } });
    assert.deepEqual(await snapshot(), { counts: { ...none, running: 1 }, found: [1, 1], events: [] });
    await administer(
      url,
      "update agent_state set status = 'error', result = null, updated_at = now() where session_id = 'old'",
    );
    assert.deepEqual(await snapshot(), { counts: { ...none, error: 1 }, found: [0, 0], events: ["session.failed"] });
    await administer(url, "update agent_state set status = 'running' where session_id = 'old'");
    await mustAdvance(store, step.owned, { session: { status: "done" } });
    const events = ["session.ended", "session.failed"];
    assert.deepEqual(await snapshot(), { counts: { ...none, done: 1 }, found: [0, 0], events });
  });

  test("a server that is unreachable, or refuses us, is reported with a next step", async (t) => {
    const { url, remove } = await postgresHome();
    t.after(remove);
    const nowhere = new URL(url);
    nowhere.port = String(await freePort());
    await assert.rejects(openPostgresStore({ url: nowhere.href }), {
      name: "EverstepError",
      code: "store_unavailable",
    });
    const stranger = new URL(url);
    stranger.password = "wrong";
    await assert.rejects(openPostgresStore({ url: stranger.href }), /store_unavailable: .*check user, password/);
  });

  test("an id from outside with a zero character finds nothing", async (t) => {
    const { url, remove } = await postgresHome();
    const store = await openPostgresStore({ url });
    t.after(async () => {
      await store.close();
      await remove();
    });
    assert.equal(await store.getSession("a\u0000b"), null);
    assert.deepEqual(await store.listSteps({ session_id: "\ud800", limit: 1, offset: 0 }), []);
    assert.deepEqual(await store.search({ q: "a\u0000b", limit: 1 }), []);
  });
});
