import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Action } from "../../src/domain/action.ts";
import type { Conversation } from "../../src/domain/conversation.ts";
import { copyStore, sumStore } from "../../src/store/copy-store.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { FORMAT } from "../../src/store/embedded/migrations.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { type Columns, SCHEMA, type Schema, TABLE_NAMES } from "../../src/store/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import {
  type Advance,
  aConversation,
  aCursor,
  advance,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  failedStep,
  mustCommit,
  mustCreate,
  settled,
} from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";

/** A schema in which every table has one more column at the end. */
const WIDER = Object.fromEntries(
  TABLE_NAMES.map((table) => [table, { ...SCHEMA[table], added: "json" }]),
) as unknown as Schema;

const EMBEDDED_MIGRATION = {
  name: "added",
  columns: Object.fromEntries(TABLE_NAMES.map((table) => [table, ["added"]])),
};
const POSTGRES_MIGRATION = {
  number: 9000,
  name: "added",
  sql: TABLE_NAMES.map((table) => `alter table ${table} add column added jsonb`).join(";"),
};

type Home = { open: (schema: "today's" | "wider") => Promise<Store>; remove: () => Promise<void> };

async function embeddedHome(): Promise<Home> {
  const scratch = await scratchFolder();
  const wider = { schema: WIDER, migrations: [EMBEDDED_MIGRATION] };
  return {
    open: (schema) => openEmbeddedStore({ folder: scratch.path, ...(schema === "wider" ? wider : {}) }),
    remove: async () => await scratch[Symbol.asyncDispose](),
  };
}

async function sharedHome(): Promise<Home> {
  const { url, remove } = await postgresHome();
  const wider = { schema: WIDER, migrations: [POSTGRES_MIGRATION] };
  return { open: (schema) => openPostgresStore({ url, ...(schema === "wider" ? wider : {}) }), remove };
}

/** The same row with a value in the new column. */
const wider = <Row extends object>(row: Row, added: unknown = { made: "of", list: [1, null] }): Row => ({
  ...row,
  added,
});

/** A row of every table, written in every possible way: alone, together, replaced. */
async function inhabit(store: Store): Promise<void> {
  const conversation = wider(aConversation());
  const { conversation_id } = conversation;
  await mustCommit(store, {
    conversations: [{ kind: "create", conversation }],
    participants: [wider(aParticipant({ conversation_id }))],
    messages: [wider(aMessage({ conversation_id })), wider(aMessage({ conversation_id }), "text")],
    agent_configs: [wider(anAgentConfig())],
  });
  let owned = await mustCreate(store, wider(aSession({ conversation_id })));
  const { session_id } = owned.session;
  const write = async (next: Advance, actions: Action[] = []): Promise<void> => {
    const { messages: _, ...batch } = next.batch;
    await mustCommit(store, { ...batch, ...(actions.length > 0 ? { actions } : {}) });
    owned = next.owned;
  };
  await write(advance(owned, { step: wider({}) }));
  await write(advance(owned, { step: wider({}), session: wider({}, "changed") }));
  await write(failedStep(owned, wider({})));
  await write(advance(owned, { step: wider({}), session: { last_error: null } }), [
    settled(wider(anAction({ session_id }))),
  ]);
  const pause = settled(wider(anAction({ session_id, action_type: "agent_pause" })));
  await mustCommit(store, {
    sessions: [{ kind: "update", session: { ...owned.session, status: "paused" }, owner: owned.owner }],
    actions: [pause],
    only_if_queue_empty: true,
  });
  await mustCommit(store, {
    cursors: [wider(aCursor({ session_id, conversation_id }))],
    actions: [wider(anAction({ session_id }))],
  });
}

/** The values of the new column, by table. */
async function addedIn(store: Store): Promise<Record<string, unknown[]>> {
  const page = { limit: 100, offset: 0 };
  const sessions = await store.listSessions(page);
  const conversations = await store.listConversations(page);
  const addedOf = (rows: object[]): unknown[] => rows.map((row) => (row as { added?: unknown }).added);
  const each = async <Row, Found extends object>(rows: Row[], read: (row: Row) => Promise<Found[]>) =>
    addedOf((await Promise.all(rows.map(read))).flat());
  return {
    agent_state: addedOf(sessions),
    agent_steps: await each(sessions, ({ session_id }) => store.listSteps({ session_id, ...page })),
    queue: addedOf(await store.listActions(page)),
    conversations: addedOf(conversations),
    conversation_participants: await each(conversations, ({ conversation_id }) =>
      store.listParticipants(conversation_id),
    ),
    conversation_messages: await each(conversations, ({ conversation_id }) =>
      store.listMessages({ conversation_id, ...page }),
    ),
    session_cursors: await each(sessions, async ({ session_id }) => {
      const cursors = conversations.map(({ conversation_id }) => store.getCursor({ session_id, conversation_id }));
      return (await Promise.all(cursors)).filter((cursor) => cursor !== null);
    }),
    agent_config: addedOf(await store.listAgentConfigs(page)),
  };
}

const ASSIGNED = { made: "of", list: [1, null] };
const EXPECTED = {
  agent_state: ["changed"],
  agent_steps: [ASSIGNED, ASSIGNED, ASSIGNED, ASSIGNED],
  queue: [ASSIGNED, ASSIGNED, ASSIGNED],
  conversations: [ASSIGNED],
  conversation_participants: [ASSIGNED],
  conversation_messages: [ASSIGNED, "text"],
  session_cursors: [ASSIGNED],
  agent_config: [ASSIGNED],
};

/** Only the embedded store moves rows out of a journal. */
const archive = (store: Store): Promise<void> =>
  "compact" in store ? (store.compact as () => Promise<void>)() : Promise.resolve();

await onPostgres(() => {
  for (const [engine, makeHome, makeOther] of [
    ["embedded", embeddedHome, sharedHome],
    ["postgres", sharedHome, embeddedHome],
  ] as const) {
    describe(`a column that only a test's schema has, on ${engine}`, () => {
      test("survives a commit, a read, an archive, a restart and a copy to the other engine and back", async (t) => {
        const [home, other, back] = [await makeHome(), await makeOther(), await makeHome()];
        t.after(async () => {
          for (const { remove } of [home, other, back]) await remove();
        });
        const first = await home.open("wider");
        await inhabit(first);
        assert.deepEqual(await addedIn(first), EXPECTED);
        await archive(first);
        assert.deepEqual(await addedIn(first), EXPECTED);
        await first.close();

        await using stores = new AsyncDisposableStack();
        const opened = async (one: Home): Promise<Store> => {
          const store = await one.open("wider");
          stores.defer(() => store.close());
          return store;
        };
        const again = await opened(home);
        assert.deepEqual(await addedIn(again), EXPECTED);
        const [copy, copyOfCopy] = [await opened(other), await opened(back)];
        const sums = await copyStore(again, copy);
        assert.deepEqual(await copyStore(copy, copyOfCopy), sums);
        assert.deepEqual(await addedIn(copyOfCopy), EXPECTED);
        assert.deepEqual(await sumStore(copyOfCopy), sums);
      });

      test("is null in what today's version wrote, and takes values from then on", async (t) => {
        const home = await makeHome();
        const before = await home.open("today's");
        await inhabit(before);
        await archive(before);
        const now = await addedIn(before);
        await before.close();

        const store = await home.open("wider");
        t.after(async () => {
          await store.close();
          await home.remove();
        });
        const nulls = Object.fromEntries(Object.entries(now).map(([table, rows]) => [table, rows.map(() => null)]));
        assert.deepEqual(await addedIn(store), nulls);
        const session = aSession({ session_id: "later" });
        await mustCreate(store, wider(session));
        assert.deepEqual(await store.getSession("later"), { ...session, added: ASSIGNED });
        await archive(store);
        assert.deepEqual(await store.getSession("later"), { ...session, added: ASSIGNED });
      });
    });
  }
});

// A schema that omits a field, adds one, or gives one a wrong type does not compile.
const { title: _, ...forgetful } = SCHEMA.conversations;
// @ts-expect-error: a field is missing
forgetful satisfies Columns<Conversation>;
// @ts-expect-error: there is no such field
({ ...SCHEMA.conversations, added: "text" }) satisfies Columns<Conversation>;
// @ts-expect-error: a number cannot hold a title
({ ...SCHEMA.conversations, title: "integer" }) satisfies Columns<Conversation>;
SCHEMA.conversations satisfies Columns<Conversation>;

test("a folder with a later schema is refused by today's version", async () => {
  await using scratch = await scratchFolder();
  const migrations = [EMBEDDED_MIGRATION];
  await (await openEmbeddedStore({ folder: scratch.path, schema: WIDER, migrations })).close();
  await assert.rejects(openEmbeddedStore({ folder: scratch.path }), new RegExp(`store_newer: .*format ${FORMAT + 1}`));
});
