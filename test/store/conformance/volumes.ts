import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext } from "node:test";
import { Archives, type Operation } from "../../../src/archive/archives.ts";
import { VolumeFiles } from "../../../src/archive/volume-files.ts";
import { EverstepError } from "../../../src/domain/errors.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { ArchiveJob } from "../../../src/domain/volume.ts";
import type { OwnedSession, StepFilter, Store } from "../../../src/store/store.ts";
import {
  aConversation,
  aFork,
  aMessage,
  aSession,
  aTime,
  failedStep,
  mustAdvance,
  mustCommit,
  mustCreate,
  WORKER,
  written,
} from "../fixtures.ts";
import { randomFrom } from "../random.ts";
import { scratchFolder } from "../scratch-folder.ts";
import { IN_ORDER, type OpenStore, testOnFreshStore } from "./opened-store.ts";
import { grow, randomFilter } from "./steps.ts";

/** Archives everything that has ended. */
const EVERYTHING: Operation = { kind: "archive", older_than_ms: -86_400_000, dry_run: false };
const DROP: Operation = { ...EVERYTHING, kind: "drop" };

type World = { sessions: Session[]; conversation_ids: string[]; message_ids: string[]; agent_ids: string[] };

export async function archivesOf(
  store: Store,
  t: Pick<TestContext, "after">,
): Promise<{ archives: Archives; folder: string }> {
  const scratch = await scratchFolder();
  const archives = new Archives(store, async () => new VolumeFiles(null), scratch.path);
  t.after(() => scratch[Symbol.asyncDispose]());
  return { archives, folder: scratch.path };
}

export async function finished(archives: Archives, operation: Operation): Promise<ArchiveJob> {
  archives.start(operation);
  const job = (await archives.done()) as ArchiveJob;
  assert.equal(job.error, null);
  return job;
}

export async function ended(store: Store, owned: OwnedSession, status: "done" | "error" = "done"): Promise<Session> {
  const session: Session = { ...owned.session, status, ended_at: aTime(), updated_at: aTime() };
  await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }] });
  return session;
}

/** Continues a session that has ended, as `resume` does. */
async function revived(store: Store, session_id: string): Promise<OwnedSession> {
  const claimed = await store.claimSession({ worker: WORKER, session_id });
  assert.ok(claimed);
  const session: Session = { ...claimed.session, status: "running", ended_at: null, updated_at: aTime() };
  await mustCommit(store, { sessions: [{ kind: "update", session, owner: claimed.owner }] });
  return written(claimed, session);
}

/** Sessions of two agents with failed attempts, forks of ended and of running ones, and two conversations. */
async function aWorld(store: Store): Promise<World> {
  const quiet = aConversation();
  const busy = aConversation();
  await mustCommit(store, {
    conversations: [quiet, busy].map((conversation) => ({ kind: "create" as const, conversation })),
  });
  const talk = async (conversation_id: string): Promise<string> => {
    const message = aMessage({ conversation_id, text: "Über allen Gipfeln", data: { n: 1 } });
    await mustCommit(store, { messages: [message] });
    return message.message_id;
  };
  const message_ids = [await talk(quiet.conversation_id), await talk(busy.conversation_id)];
  const plain = await grow(store, await mustCreate(store, aSession({ conversation_id: quiet.conversation_id })), 30);
  const failing = await grow(store, await mustCreate(store, aSession({ agent_id: "agent-2" })), 12, [0, 3, 3, 12]);
  const trailing = failedStep(failing.owned);
  await mustCommit(store, trailing.batch);
  const fork = await mustCreate(store, aFork(plain.owned.session, plain.rows[10] as Step));
  const forked = await grow(store, fork, 20, [15]);
  const live = await mustCreate(store, aFork(forked.owned.session, forked.rows.at(-1) as Step));
  const running = await grow(store, live, 25);
  const speaking = await mustCreate(store, aSession({ agent_id: "agent-2", conversation_id: busy.conversation_id }));
  const speaker = await grow(store, speaking, 5);
  message_ids.push(await talk(quiet.conversation_id));
  const never = await mustCreate(store, aSession());
  const sessions = [
    await ended(store, plain.owned),
    await ended(store, trailing.owned, "error"),
    await ended(store, forked.owned),
    running.owned.session,
    speaker.owned.session,
    await ended(store, never),
  ];
  const conversation_ids = [quiet.conversation_id, busy.conversation_id];
  return { sessions, conversation_ids, message_ids, agent_ids: ["agent-1", "agent-2"] };
}

/** The results of every read of steps and messages, with many filters. */
async function everything(store: Store, world: World): Promise<unknown[]> {
  const random = randomFrom(7);
  const answers: unknown[] = [];
  const ask = async (filter: StepFilter): Promise<Step[]> => {
    const steps = await store.listSteps(filter);
    answers.push({ filter, steps });
    return steps;
  };
  for (const { session_id } of world.sessions) {
    const rows = await ask({ session_id, limit: 1000, offset: 0 });
    answers.push(await store.latestStep({ session_id }));
    for (let round = 0; rows.length > 0 && round < 12; round++)
      await ask({ session_id, ...randomFilter(random, rows), limit: 1 + random.below(10), offset: random.below(12) });
  }
  for (const agent_id of world.agent_ids) {
    const rows = await ask({ agent_id, limit: 1000, offset: 0 });
    for (let round = 0; round < 5; round++)
      await ask({ agent_id, ...randomFilter(random, rows), limit: 1 + random.below(10), offset: random.below(12) });
  }
  for (const conversation_id of world.conversation_ids) {
    const messages = await store.listMessages({ conversation_id, limit: 1000, offset: 0 });
    answers.push(messages);
    for (const { message_id, created_at: since } of messages) {
      answers.push(await store.getMessage(message_id));
      answers.push(await store.listMessages({ conversation_id, after: message_id, limit: 3, offset: 1 }));
      answers.push(await store.listMessages({ conversation_id, since, limit: 3, offset: 2 }));
    }
  }
  return answers;
}

const filesIn = async (folder: string): Promise<string[]> => (await readdir(folder)).toSorted();

/** History that was moved from the tables to volumes. */
export function volumes(open: OpenStore): void {
  describe("volumes", IN_ORDER, () => {
    const test = testOnFreshStore(open);

    test("archived history is read as before, by every filter, also after reopening and restoring", async (opened, t) => {
      const { store } = opened;
      const world = await aWorld(store);
      const before = await everything(store, world);
      const { archives, folder } = await archivesOf(store, t);
      const planned = await finished(archives, { ...EVERYTHING, dry_run: true } as Operation);
      assert.deepEqual(await filesIn(folder), []);
      const job = await finished(archives, EVERYTHING);
      assert.deepEqual([job.sessions, job.steps, job.messages], [3, planned.steps, planned.messages]);
      assert.ok(job.messages > 30 && job.steps > 50);
      assert.deepEqual(await everything(store, world), before);
      assert.equal((await finished(archives, EVERYTHING)).volumes, 0);

      const reopened = await opened.reopen();
      const again = new Archives(reopened, async () => new VolumeFiles(null), folder);
      assert.deepEqual(await everything(reopened, world), before);
      const session_ids = world.sessions.map(({ session_id }) => session_id);
      const restored = await finished(again, { kind: "restore", session_ids });
      assert.deepEqual([restored.sessions, restored.steps, restored.messages], [3, job.steps, job.messages]);
      assert.deepEqual(await everything(reopened, world), before);
      assert.deepEqual(await filesIn(folder), []);
      assert.deepEqual(await again.list(), []);
      assert.equal((await finished(again, EVERYTHING)).steps, job.steps);
      assert.deepEqual(await everything(reopened, world), before);
    });

    test("a session that is resumed or forked after it was archived goes on, and can be archived again", async ({
      store,
    }, t) => {
      const world = await aWorld(store);
      const { archives } = await archivesOf(store, t);
      await finished(archives, EVERYTHING);
      const [plain, failed] = world.sessions as [Session, Session];
      const rows = await store.listSteps({ session_id: failed.session_id, limit: 100, offset: 0 });
      const more = await grow(store, await revived(store, failed.session_id), 20, [13, 17]);
      const all = [...rows, ...more.rows];
      assert.deepEqual(await store.listSteps({ session_id: failed.session_id, limit: 100, offset: 0 }), all);
      assert.deepEqual(await store.getSession(failed.session_id), more.owned.session);
      const fork = await mustCreate(store, aFork(failed, rows[2] as Step));
      const grown = await grow(store, fork, 6);
      const line = [...rows.slice(0, 3), ...grown.rows];
      assert.deepEqual(await store.listSteps({ session_id: fork.session.session_id, limit: 100, offset: 0 }), line);

      await ended(store, more.owned);
      world.sessions.push(await ended(store, grown.owned));
      const before = await everything(store, world);
      assert.equal((await finished(archives, EVERYTHING)).sessions, 2);
      assert.deepEqual(await everything(store, world), before);
      const last = await grow(store, await revived(store, plain.session_id), 40);
      const page = { session_id: plain.session_id, limit: 20, offset: 25 };
      assert.deepEqual((await store.listSteps(page)).slice(-10), last.rows);
      assert.equal((await store.listSteps(page)).length, 16);
    });

    test("a session that goes on while it is copied keeps its rows", async ({ store }, t) => {
      const world = await aWorld(store);
      const [plain] = world.sessions as [Session];
      const before = await everything(store, world);
      const { archives, folder } = await archivesOf(store, t);
      const record = store.volumes.record.bind(store.volumes);
      let owned: OwnedSession | undefined;
      store.volumes.record = async (...recorded) => {
        owned ??= await revived(store, plain.session_id);
        return record(...recorded);
      };
      assert.equal((await finished(archives, EVERYTHING)).sessions, 2);
      assert.deepEqual(await everything(store, world), before);
      assert.deepEqual(await store.volumes.ranges({ owner_ids: [plain.session_id] }), []);
      await mustAdvance(store, owned as OwnedSession);
      assert.equal((await store.listSteps({ session_id: plain.session_id, limit: 100, offset: 0 })).length, 32);
      assert.equal((await filesIn(folder)).length, 1);
    });

    test("what was said in an archived conversation keeps its id and its number", async ({ store }, t) => {
      const world = await aWorld(store);
      const { archives } = await archivesOf(store, t);
      await finished(archives, EVERYTHING);
      const [conversation_id] = world.conversation_ids as [string];
      const said = await store.listMessages({ conversation_id, limit: 1000, offset: 0 });
      const [message_id] = world.message_ids as [string];
      const repeated = { kind: "exists", table: "conversation_messages", id: message_id };
      assert.deepEqual(await store.commit({ messages: [aMessage({ conversation_id, message_id })] }), repeated);
      const next = aMessage({ conversation_id });
      await mustCommit(store, { messages: [next] });
      assert.deepEqual(await store.listMessages({ conversation_id, limit: 1000, offset: 0 }), [...said, next]);
      const from = { conversation_id, after: said.at(-2)?.message_id as string, limit: 10, offset: 0 };
      assert.deepEqual(await store.listMessages(from), [said.at(-1), next]);
    });

    test("dropping takes whole volumes that no younger session needs, and leaves the sessions", async ({
      store,
    }, t) => {
      const world = await aWorld(store);
      const { archives, folder } = await archivesOf(store, t);
      await finished(archives, EVERYTHING);
      // A running fork needs the sessions that it was forked from.
      assert.equal((await finished(archives, { ...DROP, dry_run: true } as Operation)).sessions, 0);
      const running = await store.claimSession({ worker: WORKER, session_id: world.sessions[3]?.session_id as string });
      await ended(store, running as OwnedSession);
      assert.equal((await finished(archives, DROP)).sessions, 3);
      const [plain] = world.sessions as [Session];
      assert.deepEqual(await store.listSteps({ session_id: plain.session_id, limit: 100, offset: 0 }), []);
      assert.equal(await store.latestStep({ session_id: plain.session_id }), null);
      assert.deepEqual(await store.getSession(plain.session_id), plain);
      assert.deepEqual(
        await filesIn(folder),
        (await archives.list()).some(({ state }) => state === "archived") ? [] : [],
      );
      const more = await grow(store, await revived(store, plain.session_id), 33);
      assert.deepEqual(await store.listSteps({ session_id: plain.session_id, limit: 100, offset: 0 }), more.rows);
      assert.deepEqual(
        await store.listSteps({ session_id: plain.session_id, limit: 1, offset: 1 }),
        more.rows.slice(1, 2),
      );
    });

    test("pages of a fork whose parent was dropped have each of its steps once", async ({ store }, t) => {
      const { archives } = await archivesOf(store, t);
      const parent = await grow(store, await mustCreate(store, aSession()), 10);
      await ended(store, parent.owned);
      await finished(archives, EVERYTHING);
      const fork = await mustCreate(store, aFork(parent.owned.session, parent.rows[10] as Step));
      const { owned, rows } = await grow(store, fork, 30);
      await ended(store, owned);
      await finished(archives, DROP);
      const { session_id } = owned.session;
      const pages: Step[] = [];
      for (let offset = 0; offset < 25; offset += 5)
        pages.push(...(await store.listSteps({ session_id, limit: 5, offset })));
      assert.deepEqual(pages, rows);
    });

    test("search skips archives and says how many sessions that are", async ({ store }, t) => {
      const world = await aWorld(store);
      const { archives } = await archivesOf(store, t);
      const [plain] = world.sessions as [Session];
      const q = plain.session_id;
      assert.notEqual((await store.search({ q, limit: 10 })).length, 0);
      assert.equal(await store.volumes.countArchived({}), 0);
      await finished(archives, EVERYTHING);
      assert.deepEqual(await store.search({ q, limit: 10 }), []);
      assert.equal(await store.volumes.countArchived({}), 3);
      assert.equal(await store.volumes.countArchived({ agent_id: "agent-2" }), 1);
      assert.equal(await store.volumes.countArchived({ session_id: plain.session_id }), 1);
      await finished(archives, { kind: "restore", session_ids: [q] });
      assert.notEqual((await store.search({ q, limit: 10 })).length, 0);
      assert.equal(await store.volumes.countArchived({}), 2);
    });

    test("a volume that is not there fails the reads that need it, and no other", async ({ store }, t) => {
      const world = await aWorld(store);
      const { archives, folder } = await archivesOf(store, t);
      await finished(archives, EVERYTHING);
      for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
      store.volumes.attach(new VolumeFiles(null));
      const [plain, , , , speaker] = world.sessions as [Session, Session, Session, Session, Session];
      await assert.rejects(
        store.listSteps({ session_id: plain.session_id, limit: 1, offset: 0 }),
        (error) => error instanceof EverstepError && error.code === "archive_unreachable",
      );
      assert.equal((await store.listSteps({ session_id: speaker.session_id, limit: 10, offset: 0 })).length, 6);
      assert.equal((await store.listSessions({ limit: 100, offset: 0 })).length, 6);
    });
  });
}
