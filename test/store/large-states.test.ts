import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Worker } from "node:worker_threads";
import type { Step } from "../../src/domain/step.ts";
import type { Store } from "../../src/store/store.ts";
import { aConversation, aMessage, mustAdvance, mustCommit, mustCreate } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { openStore } from "./store-folder.ts";

/** A quarter of what the thread has in production. */
const HEAP_MB = 512;
const SESSIONS = 2;
const STATES = 3;
/** Near the largest frame that a step may return. */
const STATE_CHARACTERS = 30_000_000;
/** Together their pages exceed the heap. */
const READERS = 6;
const MESSAGES = 40;
const MESSAGE_CHARACTERS = 1_000_000;

const letter = (n: number): string => String.fromCharCode(97 + (n % 26));

function assertState(step: Step | undefined, n: number): void {
  const text = step?.state["text"];
  assert.ok(typeof text === "string" && step?.state["n"] === n, `state ${n} is there`);
  assert.equal(text.length, STATE_CHARACTERS);
  assert.equal(text[0], letter(n));
}

/** Sessions whose states cannot be stored as deltas. */
async function writeStates(store: Store): Promise<string[]> {
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => mustCreate(store)));
  await Promise.all(
    sessions.map(async (first) => {
      let owned = first;
      for (let n = 0; n < STATES; n += 1) {
        const state = { n, text: letter(n).repeat(STATE_CHARACTERS) };
        owned = (await mustAdvance(store, owned, { state })).owned;
      }
    }),
  );
  return sessions.map(({ session }) => session.session_id);
}

/** Concurrent readers, each of which requests all states of a session. */
async function readStates(store: Store, session_ids: string[], readers: number): Promise<void> {
  const read = async (reader: number): Promise<void> => {
    const session_id = session_ids[reader % SESSIONS] as string;
    const steps = await store.listSteps({ session_id, limit: 500, offset: 0 });
    assert.equal(steps.length, STATES);
    for (const [n, step] of steps.entries()) assertState(step, n);
  };
  await Promise.all(Array.from({ length: readers }, (_, reader) => read(reader)));
}

describe("states of 30 MB, several of several sessions", () => {
  test("are written, read by many at once, moved and found after a restart by one thread with a quarter of its memory", async () => {
    await using scratch = await scratchFolder();
    const threads: Worker[] = [];
    const note = (thread: Worker) => void threads.push(thread);
    process.on("worker", note);
    const notices: string[] = [];
    let session_ids: string[];
    {
      await using store = await openStore(scratch.path, { heap_mb: HEAP_MB }, (text) => notices.push(text));
      session_ids = await writeStates(store);
      await Promise.all([store.checkpoint(), readStates(store, session_ids, READERS)]);
    }
    {
      await using store = await openStore(scratch.path, { heap_mb: HEAP_MB }, (text) => notices.push(text));
      await readStates(store, session_ids, SESSIONS);
      const listed = await store.listSessions({ limit: 100, offset: 0 });
      assert.equal(listed.length, SESSIONS);
      for (const session of listed) assert.equal((session.context["text"] as string).length, STATE_CHARACTERS);
    }
    process.removeListener("worker", note);
    assert.deepEqual(notices, []);
    assert.equal(threads.length, 2, "a thread for each time that the store was open");
  });

  test("so are large messages, of which a page is read in parts and returned whole and in order", async () => {
    await using scratch = await scratchFolder();
    await using store = await openStore(scratch.path, { heap_mb: 256 });
    const conversation = aConversation();
    const { conversation_id } = conversation;
    await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
    for (let n = 0; n < MESSAGES; n += 1)
      await mustCommit(store, {
        messages: [aMessage({ conversation_id, message_id: `m${n}`, text: letter(n).repeat(MESSAGE_CHARACTERS) })],
      });
    const read = () => store.listMessages({ conversation_id, limit: 500, offset: 0 });
    for (const moved of [false, true]) {
      if (moved) await store.checkpoint();
      for (const messages of await Promise.all(Array.from({ length: 4 }, read)))
        assert.deepEqual(
          messages.map(({ message_id }) => message_id),
          Array.from({ length: MESSAGES }, (_, n) => `m${n}`),
        );
    }
    const after = await store.listMessages({ conversation_id, after: "m5", limit: 30, offset: 3 });
    assert.deepEqual([after.length, after[0]?.message_id, after.at(-1)?.message_id], [30, "m9", "m38"]);
  });
});
