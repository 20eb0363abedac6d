import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { searchedText, summaryOf } from "../../src/domain/session-summary.ts";
import { folded } from "../../src/domain/words.ts";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { OwnedSession } from "../../src/store/store.ts";
import { advance, aSession, mustCommit, mustCreate, WORKER } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";

const PAGE = { limit: 10, offset: 0 };

async function create(store: EmbeddedStore, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    const sessions = Array.from({ length: Math.min(500, left) }, () => aSession());
    await mustCommit(store, { sessions: sessions.map((session) => ({ kind: "create", session, worker: null })) });
  }
}

test("an earlier process's leftover lists are not read, and nothing is left at the end", async () => {
  await using scratch = await scratchFolder();
  const file = join(scratch.path, "lists.tmp");
  const first = await openEmbeddedStore({ folder: scratch.path });
  await create(first, 3);
  assert.equal((await first.summarizeSessions(PAGE)).total, 3);
  assert.ok(existsSync(file));
  await first.close();
  assert.ok(!existsSync(file));
  await writeFile(file, "half of a database");
  const second = await openEmbeddedStore({ folder: scratch.path });
  assert.equal((await second.summarizeSessions(PAGE)).total, 3);
  await second.close();
});

test("sessions that changed by the thousand while no list was read are in the next list", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  assert.equal((await store.summarizeSessions(PAGE)).total, 0);
  await create(store, 6000);
  const { total, counts, sessions } = await store.summarizeSessions(PAGE);
  assert.deepEqual([total, counts.running, sessions.length], [6000, 6000, 10]);
  assert.equal((await store.counts()).sessions.running, 6000);
  await store.close();
});

test("a search that matches very many says that it did not count them all", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  await create(store, 2500);
  for (const q of ["count", "c"]) {
    const { exact, total, sessions } = await store.summarizeSessions({ ...PAGE, q });
    assert.deepEqual([exact, total, sessions.length], [false, 2000, 10]);
  }
  assert.equal((await store.summarizeSessions({ ...PAGE, q: "nowhere" })).exact, true);
  await store.close();
});

test("sessions that are named, or whose order the journal has, are listed without building any list", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  const { session } = await mustCreate(store, aSession());
  const spawned_by = { session_id: session.session_id, iteration: 0 };
  const child = await mustCreate(store, aSession({ spawned_by, status: "waiting" }));
  const children = await store.summarizeSessions({ ...PAGE, spawned_by: session.session_id, statuses: ["waiting"] });
  assert.deepEqual([children.total, children.sessions[0]?.session_id], [1, child.session.session_id]);
  assert.equal((await store.summarizeSessions({ ...PAGE, session_ids: [session.session_id] })).total, 1);
  for (const filter of [
    {},
    { status: "running" },
    { agent_id: "agent-1" },
    { spawned_by: session.session_id },
  ] as const)
    assert.ok((await store.listSessions({ ...PAGE, ...filter })).length > 0);
  assert.equal((await store.getAgent("agent-1"))?.session_count, 2);
  assert.equal((await store.counts()).sessions.running, 1);
  assert.ok(!existsSync(join(scratch.path, "lists.tmp")));
  assert.equal((await store.summarizeSessions(PAGE)).total, 2);
  assert.ok(existsSync(join(scratch.path, "lists.tmp")));
  assert.equal((await store.getAgent("agent-1"))?.session_count, 2);
  await store.close();
});

const TEXTS = [
  "Zürich, at the end of the Lake",
  'said "so" and \u0000 no more',
  "два дня 😀😁",
  "50%_ OR NOT near*",
  "\uffff\ufffe\ud800 what is no character",
  "øø",
];
const SEARCHES = [
  "zurich",
  "LAKE",
  'said "so"',
  "\u0000 no",
  "дня 😀",
  "😀😁",
  "%_ or",
  "not near*",
  "\uffff\ufffe",
  "text 7",
  "nowhere",
  "x".repeat(100),
  `${"y".repeat(57)}😀😁`,
  "agent-1 count text 11",
  "ø",
  "øø",
  "øøø",
  "ke",
  "😀",
  "\u0000",
  "\uffff",
  "\ufffd",
  "*",
  "7",
  "\u0301",
];

/** Every search finds exactly the sessions whose texts match, and their number. */
async function compareSearches(store: EmbeddedStore, owned: OwnedSession[]): Promise<void> {
  const texts = owned.map(({ session }) => ({ id: session.session_id, text: searchedText(summaryOf(session)) }));
  for (const q of SEARCHES) {
    const needle = folded(q).toWellFormed();
    const expected = texts.filter(({ text }) => text.toWellFormed().includes(needle)).map(({ id }) => id);
    const { sessions, total, exact } = await store.summarizeSessions({ limit: 2000, offset: 0, q });
    const ids = sessions.map(({ session_id }) => session_id).toReversed();
    assert.deepEqual([ids, total, exact], [expected, expected.length, true], JSON.stringify(q));
  }
}

const indexed = async (store: EmbeddedStore): Promise<void> => {
  while ((await store.stats()).unindexed_texts !== 0);
};

test("searches find the same before texts are indexed, then, and while texts change", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  const long = { result: `${"x".repeat(120)} ${"y".repeat(57)}😀😁` };
  const sessions = Array.from({ length: 600 }, (_, at) => aSession({ result: TEXTS[at] ?? `text ${at}` }));
  const owned: OwnedSession[] = [aSession(long), ...sessions].map((session) => ({
    session,
    owner: { worker: WORKER, epoch: 1, revision: 0 },
    after_crash: false,
  }));
  await mustCommit(store, {
    sessions: owned.map(({ session }) => ({ kind: "create", session, worker: WORKER })),
  });
  await compareSearches(store, owned);
  await indexed(store);
  await compareSearches(store, owned);
  // A few are updated one by one; very many are reindexed.
  for (const count of [10, 560]) {
    const changed = owned.slice(0, count).map((one, at) => advance(one, { text: `text ${at + count}` }));
    await mustCommit(store, {
      sessions: changed.flatMap(({ batch }) => batch.sessions ?? []),
      steps: changed.flatMap(({ batch }) => batch.steps ?? []),
    });
    changed.forEach((one, at) => (owned[at] = one.owned));
    await compareSearches(store, owned);
    if (count > 500) await indexed(store);
    await compareSearches(store, owned);
  }
  await store.close();
});

test("a store that is closed while texts are indexed leaves nothing", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  await create(store, 2000);
  assert.equal((await store.summarizeSessions({ ...PAGE, q: "nowhere" })).total, 0);
  const { unindexed_texts } = await store.stats();
  assert.ok(unindexed_texts !== null && unindexed_texts > 0);
  await store.close();
  assert.ok(!existsSync(join(scratch.path, "lists.tmp")));
});
