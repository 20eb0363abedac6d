import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { describe, test } from "node:test";
import { prune } from "../../src/main/maintenance.ts";
import { copyStore, sumStore } from "../../src/store/copy-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import type { MakeHome } from "../runtime/runtime-fixture.ts";
import {
  aConversation,
  aCursor,
  aFork,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  aWebhook,
  failedStep,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
} from "./fixtures.ts";

const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** A row of every kind, and every kind of session. */
async function inhabit(store: Store): Promise<void> {
  await store.webhooks.put(
    aWebhook({ agent_id: null, former_secret: "whsec_Zm9ybWVy", former_secret_until: LONG_AGO }),
  );
  const conversation = aConversation({ tags: ["b", "a"], title: "a \u0000 title" });
  const { conversation_id } = conversation;
  await mustCommit(store, {
    conversations: [{ kind: "create", conversation }],
    participants: [aParticipant({ conversation_id }), aParticipant({ conversation_id, user_id: "user-2" })],
    agent_configs: [anAgentConfig({ agent_id: "never used", params: { z: 1, a: [null, "\ud800"] } })],
  });
  let owned = await mustCreate(store, aSession({ conversation_id, params: { z: 1, a: { d: 1, c: 2 } } }));
  const steps = [];
  for (let at = 0; at < 40; at++) {
    const lines = (owned.session.context["lines"] ?? []) as string[];
    const next = await mustAdvance(store, owned, { state: { z: at, lines: [...lines, `line ${at}`], a: at } });
    steps.push(next.step);
    owned = next.owned;
  }
  const failed = failedStep(owned);
  await mustCommit(store, failed.batch);
  const { session_id } = owned.session;
  const cursor = aCursor({ session_id, conversation_id });
  await mustCommit(store, {
    actions: [anAction({ session_id }), settled(anAction({ session_id, payload: { text: "\u0000" } }))],
    messages: [aMessage({ conversation_id, text: "said" }), aMessage({ conversation_id, data: { b: 1, a: 2 } })],
    cursors: [cursor],
  });
  const at = steps[10];
  assert.ok(at);
  await mustAdvance(store, await mustCreate(store, aFork(owned.session, at)), { state: { forked: true } });
  await mustCreate(store, aFork(owned.session, at));
  const ended = await mustCreate(store);
  await mustAdvance(store, ended, { session: { status: "done", ended_at: LONG_AGO } });
}

async function withStores(homes: MakeHome[], work: (stores: Store[]) => Promise<void>): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const stores: Store[] = [];
  for (const makeHome of homes) {
    const home = await makeHome();
    resources.defer(() => home.remove());
    const store = await openStore(home.url);
    resources.defer(() => store.close());
    stores.push(store);
  }
  await work(stores);
}

await onPostgres(() => {
  describe("a copy of a store", () => {
    test("from LanceDB to PostgreSQL and back holds the same rows, and its sessions go on", async () => {
      await withStores([embeddedHome, postgresHome, embeddedHome], async ([first, second, third]) => {
        assert.ok(first && second && third);
        await inhabit(first);
        const sums = await sumStore(first);
        for (const [table, { rows }] of Object.entries(sums))
          assert.ok(rows > 0, `no ${table} were there to be copied`);
        assert.deepEqual(await copyStore(first, second), sums);
        assert.deepEqual(await sumStore(second), sums);
        assert.deepEqual(await copyStore(second, third), sums);
        assert.deepEqual(await sumStore(third), sums);
        for (const store of [second, third])
          for (const owned of await store.claimSessions({ worker: "worker", limit: 10 }))
            await mustAdvance(store, owned, { state: { ...owned.session.context, more: true } });
      });
    });

    test("is refused if the target is not empty, and a row that differs shows", async () => {
      await withStores([embeddedHome, embeddedHome], async ([first, second]) => {
        assert.ok(first && second);
        await inhabit(first);
        await mustCommit(second, { agent_configs: [anAgentConfig()] });
        await assert.rejects(copyStore(first, second), { code: "store_foreign" });
        const before = await sumStore(second);
        await mustCommit(second, { agent_configs: [anAgentConfig({ description: "another" })] });
        assert.notDeepEqual(await sumStore(second), before);
      });
    });
  });

  test("a prune that died between its renames is undone by the next start", async (t) => {
    const home = await embeddedHome();
    t.after(() => home.remove());
    const store = await openStore(home.url);
    await mustCreate(store, aSession({ session_id: "kept" }));
    await store.close();
    const folder = home.url.replace("lancedb:", "");
    await rename(folder, `${folder}.before-prune`);

    const again = await openStore(home.url);
    t.after(() => again.close());
    assert.ok(await again.getSession("kept"));
  });

  for (const [engine, makeHome] of [
    ["lancedb", embeddedHome],
    ["postgres", postgresHome],
  ] as const) {
    test(`pruning ${engine} deletes what ended long ago and nothing that is needed`, async (t) => {
      t.mock.method(console, "log", () => {});
      const home = await makeHome();
      t.after(() => home.remove());
      const store = await openStore(home.url);
      const end = { status: "done", ended_at: LONG_AGO } as const;
      const old = await mustAdvance(store, await mustCreate(store, aSession({ session_id: "old" })), { session: end });
      await mustCommit(store, { actions: [settled(anAction({ session_id: "old", action_id: "of old" }))] });
      const parent = await mustAdvance(store, await mustCreate(store, aSession({ session_id: "parent" })), {
        session: end,
      });
      const fork = aFork(parent.owned.session, parent.step, { session_id: "fork" });
      await mustCreate(store, fork);
      await mustAdvance(store, await mustCreate(store, aSession({ session_id: "fresh" })), {
        session: { status: "done", ended_at: new Date().toISOString() },
      });
      const talk = (conversation_id: string, status: "open" | "archived") =>
        mustCommit(store, {
          conversations: [
            { kind: "create", conversation: aConversation({ conversation_id, status, created_at: LONG_AGO }) },
          ],
          messages: [aMessage({ conversation_id, message_id: `in ${conversation_id}`, created_at: LONG_AGO })],
        });
      await talk("archived", "archived");
      await talk("open", "open");
      assert.ok(old.step);
      await store.close();
      await prune("30d", home.url);

      const pruned = await openStore(home.url);
      t.after(() => pruned.close());
      const ids = async () => (await pruned.listSessions({ limit: 10, offset: 0 })).map(({ session_id }) => session_id);
      assert.deepEqual((await ids()).toSorted(), ["fork", "fresh", "parent"]);
      assert.equal(await pruned.getAction("of old"), null);
      assert.deepEqual(await pruned.listSteps({ session_id: "old", limit: 10, offset: 0 }), []);
      assert.deepEqual(await pruned.listSteps({ session_id: "fork", limit: 10, offset: 0 }), [parent.step]);
      assert.equal(await pruned.getConversation("archived"), null);
      assert.equal(await pruned.getMessage("in archived"), null);
      assert.ok(await pruned.getConversation("open"));
      assert.ok(await pruned.getMessage("in open"));
    });
  }
});
