import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import {
  type Advance,
  advance,
  aMessage,
  anAction,
  aSession,
  consumed,
  mustAdvance,
  mustCommit,
  mustCreate,
  WORKER,
} from "../fixtures.ts";
import { type Claim, describeClaims, type OpenStore } from "./opened-store.ts";
import { countsOf } from "./session-counts.ts";
import { aWorld, batchOf, joined, readWorld, type World } from "./world.ts";

/** Ids as people and attackers write them. Each is a prefix, a pattern or a neighbor of another. */
const IDS = [
  "a",
  "A",
  " a",
  "%",
  "_",
  "*",
  "'",
  '"',
  "`",
  "\\",
  "a\\'b",
  "'; DROP TABLE agent_state; --",
  "' OR '1'='1",
  "${id}",
  ":id",
  "?1",
  "NULL",
  "0",
  "-1",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "a|b",
  "a|000000000001",
  "😀",
  "👩‍👩‍👧",
  "é",
  "e\u0301",
  "שלום",
  "\u202eabc",
  "ёлка",
  "İ",
  "\u00a0",
  "\u2028",
  "\uffff",
  "x".repeat(200),
  `${"x".repeat(199)}y`,
  "😀".repeat(100),
  "'".repeat(200),
];

type Visited = World & { step: Step };

/** One row of every table, all named by the id, and a step that has the id in each of its texts. */
async function inhabit(store: Store, id: string): Promise<Visited> {
  const world = aWorld(id);
  const owned: OwnedSession = {
    session: world.session,
    owner: { worker: WORKER, epoch: 1, revision: 0 },
    after_crash: false,
  };
  await mustCommit(store, batchOf(world));
  const words = { text: id, data: { [id]: id }, state: { [id]: id } };
  const action = consumed(world.action, 0);
  const step = { id, step_token: id, next_step_token: id, notes: id, guidance: [id], action_ids: [id] };
  const next = advance(owned, { ...words, step, actions: [action] });
  const { messages: _, ...batch } = next.batch;
  await mustCommit(store, batch);
  return { ...world, action, session: next.owned.session, step: next.step };
}

async function assertInhabited(store: Store, id: string, { step, ...world }: Visited): Promise<void> {
  const { session, action, conversation, participant, message } = world;
  const page = { limit: 500, offset: 0 };
  const reads: [read: Promise<unknown>, expected: unknown][] = [
    [readWorld(store, world), world],
    [store.listSessions({ ...page, agent_id: id }), [session]],
    [store.listSessions({ ...page, agent_id: id, status: "running" }), [session]],
    [
      store.getAgent(id),
      { agent_id: id, moniker: "count", session_count: 1, counts: countsOf([session]), latest: session },
    ],
    [store.listActions({ ...page, session_id: id }), [action]],
    [store.listActions({ ...page, agent_id: id, session_id: id, processed: true }), [action]],
    [store.listSteps({ ...page, session_id: id }), [step]],
    [store.listSteps({ ...page, session_id: id, status: "ok", after_iteration: -1 }), [step]],
    [store.listSteps({ ...page, agent_id: id }), [step]],
    [store.latestStep({ session_id: id }), step],
    [store.latestStep({ agent_id: id }), step],
    [store.listConversations({ ...page, tag: id }), [conversation]],
    [store.listParticipants(id), [participant]],
    [store.listMessages({ ...page, conversation_id: id }), [message]],
    [store.listMessages({ ...page, conversation_id: id, after: id }), []],
  ];
  const answers = await Promise.all(reads.map(([read]) => read));
  for (const [at, [, expected]] of reads.entries()) assert.deepEqual(answers[at], expected);
  const hits = await store.search({ q: id, agent_id: id, session_id: id, limit: 10 });
  assert.ok(hits.every((hit) => hit.text === id));
  assert.equal((await store.claimSession({ worker: WORKER, session_id: id }))?.session.session_id, id);
}

export function hostile(open: OpenStore): void {
  describeClaims("whatever things are named", open, (claim) => {
    claim("every id of every kind finds its own rows and no others", async (store) => {
      const worlds = new Map<string, Visited>();
      for (const id of IDS) worlds.set(id, await inhabit(store, id));
      return async (reader) => {
        for (const [id, world] of worlds) await assertInhabited(reader, id, world);
        const everyone = await reader.listAgents({ limit: 500, offset: 0 });
        const ids = new Set(everyone.map(({ agent_id }) => agent_id));
        assert.deepEqual(
          IDS.filter((id) => !ids.has(id)),
          [],
        );
      };
    });

    claim("a byte order mark in front is a part of the id", async (store) => {
      const id = "\ufeffmarked";
      const world = await inhabit(store, id);
      return (reader) => assertInhabited(reader, id, world);
    });

    claim("every id can be followed, and a fork has its parent's step", async (store) => {
      const forks = IDS.map((id) =>
        aSession({
          agent_id: "forks",
          parent_session_id: id,
          parent_iteration: 0,
          iteration: 0,
          session_id: `fork of ${id}`.slice(0, 200),
        }),
      );
      const unique = [...new Map(forks.map((fork) => [fork.session_id, fork])).values()];
      for (const fork of unique) await mustCreate(store, fork);
      return async (reader) => {
        for (const { session_id, parent_session_id } of unique) {
          const [step] = await reader.listSteps({ session_id, limit: 2, offset: 0 });
          assert.equal(step?.session_id, parent_session_id);
        }
        for (const id of IDS) {
          const abort = new AbortController();
          for await (const event of reader.follow({ session_id: id, after_iteration: -1 }, abort.signal)) {
            assert.equal(event.kind === "step" && event.step.session_id, id);
            abort.abort();
          }
        }
      };
    });
  });

  describeClaims("whatever people say", open, (claim) => {
    const texts: Record<string, string[]> = {
      "as hostile as the ids": IDS,
      "with control characters": ["\r\n\t", "\u0007\u001b[31m", "\u2028\u2029", "", " "],
      "with a zero character": ["\u0000", "a\u0000b"],
      "with halves of surrogate pairs": ["\ud83d", "a\udd11b", "\udd11\ud83d", "\ud83d\u0000"],
      "that begin like stored ones": ['\u0001"a"', "\u0001", '\u0001"\\ud83d"', "\u0001\ud83d"],
      "with a byte order mark": ["\ufeff", "\ufefftext", "te\ufeffxt"],
      "of 100,000 characters": ["1".repeat(100_000), "é😀".repeat(33_333)],
    };
    for (const [what, list] of Object.entries(texts))
      claim(`texts ${what} come back to the letter`, (store) => claimTexts(store, list));

    claim("1 MiB of JSON fits into every document", async (store) => {
      const list = Array.from({ length: 1_024 }, (_, at) => `${at} ${"é😀".repeat(170)}`.slice(0, 512));
      const big: JsonObject = { list, more: list };
      assert.ok(JSON.stringify(big).length >= 2 ** 20);
      const session_id = "big";
      const owned = await mustCreate(
        store,
        aSession({ session_id, params: big, context: big, conversation_id: "big" }),
      );
      const action = anAction({ session_id, payload: big, metadata: big });
      const message = aMessage({ conversation_id: "big", data: big, text: "x".repeat(2 ** 20) });
      await mustCommit(store, { actions: [action], messages: [message] });
      const zero = await mustAdvance(store, owned, { state: big, data: big, step: { guidance: [big] } });
      const grown: JsonObject = { ...big, list: [...list, "one more"] };
      const one = await mustAdvance(store, zero.owned, {
        state: grown,
        session: { pending_guidance: [big], result: big },
      });
      return async (reader) => {
        assert.deepEqual(await reader.getSession(session_id), one.owned.session);
        assert.deepEqual(await reader.getAction(action.action_id), action);
        assert.deepEqual(await reader.getMessage(message.message_id), message);
        assert.deepEqual(await reader.listSteps({ session_id, limit: 10, offset: 0 }), [zero.step, one.step]);
        const messages = await reader.listMessages({ conversation_id: "big", limit: 10, offset: 0 });
        assert.deepEqual(messages, [message, zero.message, one.message]);
      };
    });

    claim("a batch may be large as well", async (store) => {
      const worlds = Array.from({ length: 300 }, () => aWorld());
      await mustCommit(store, worlds.map(batchOf).reduce(joined));
      return async (reader) => {
        for (const world of worlds.slice(-3)) assert.deepEqual(await readWorld(reader, world), world);
        assert.equal((await reader.listSessions({ status: "running", limit: 500, offset: 0 })).length >= 300, true);
      };
    });
  });
}

async function claimTexts(store: Store, texts: string[]): Promise<Claim> {
  const conversation_id = newId();
  const advances: Advance[] = [];
  for (const text of texts) {
    const session = aSession({ conversation_id, moniker: text, params: { text }, last_error: text });
    const choices = { text, data: text, state: { text }, step: { notes: text, error: text } };
    advances.push(await mustAdvance(store, await mustCreate(store, session), choices));
  }
  return async (reader) => {
    const messages = await reader.listMessages({ conversation_id, limit: 500, offset: 0 });
    assert.deepEqual(
      messages,
      advances.map(({ message }) => message),
    );
    for (const { owned, step } of advances) {
      const { session_id } = step;
      assert.deepEqual(await reader.getSession(session_id), owned.session);
      assert.deepEqual(await reader.latestStep({ session_id }), step);
    }
  };
}
