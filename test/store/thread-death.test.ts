import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { connect } from "@lancedb/lancedb";
import type { Step } from "../../src/domain/step.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { aConversation, anAction, aSession, mustAdvance, mustCommit, mustCreate, settled } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { assertCoded, openStore } from "./store-folder.ts";

const LANES = 8;
const STEPS_A_ROUND = 20;
const READERS = 2;
/** Steps of a round after which the thread dies, so that many are in progress. */
const DIES_AFTER = 50;

/** Too few to make the store give up. */
const ROUNDS = 4;
/** Not a valid call: an error that the thread does not expect. */
const upset = (thread: Worker): void => thread.postMessage(null);

/** The threads that this process starts from now on, the newest last. */
function startedThreads(): { newest(): Worker } & Disposable {
  const threads: Worker[] = [];
  const note = (thread: Worker) => void threads.push(thread);
  process.on("worker", note);
  return {
    newest: () => threads.at(-1) as Worker,
    [Symbol.dispose]: () => void process.removeListener("worker", note),
  };
}

/** A session that only commits: steps with their messages, and actions that are settled at once. */
class Lane {
  readonly conversation_id: string;
  readonly steps: Step[] = [];
  readonly #store: Store;
  #owned: OwnedSession;

  private constructor(store: Store, owned: OwnedSession, conversation_id: string) {
    this.#store = store;
    this.#owned = owned;
    this.conversation_id = conversation_id;
  }

  static async open(store: Store): Promise<Lane> {
    const conversation = aConversation();
    const { conversation_id } = conversation;
    await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
    return new Lane(store, await mustCreate(store, aSession({ conversation_id })), conversation_id);
  }

  async advance(count: number, advanced: () => void): Promise<void> {
    const { agent_id, session_id } = this.#owned.session;
    for (let left = count; left > 0; left -= 1) {
      const next = await mustAdvance(this.#store, this.#owned);
      this.#owned = next.owned;
      this.steps.push(next.step);
      await mustCommit(this.#store, { actions: [settled(anAction({ agent_id, session_id }), { receipt: "bounced" })] });
      advanced();
    }
  }

  /** Each read meanwhile is correct, or fails with `store_unavailable`. */
  async readUntil(isOver: () => boolean): Promise<number> {
    const { session_id } = this.#owned.session;
    let refusals = 0;
    while (!isOver()) {
      const acknowledged = this.steps.length;
      try {
        const steps = await this.#store.listSteps({ session_id, limit: 10_000, offset: 0 });
        assert.ok(steps.length >= acknowledged, `${steps.length} steps where ${acknowledged} were acknowledged`);
        assert.deepEqual(steps.slice(0, acknowledged), this.steps.slice(0, acknowledged));
      } catch (error) {
        assertCoded(error, ["store_unavailable"]);
        refusals += 1;
      }
    }
    return refusals;
  }

  async verify(): Promise<void> {
    const { session_id } = this.#owned.session;
    const page = { limit: 10_000, offset: 0 };
    assert.deepEqual(await this.#store.listSteps({ session_id, ...page }), this.steps);
    const messages = await this.#store.listMessages({ conversation_id: this.conversation_id, ...page });
    assert.deepEqual(
      messages.map(({ iteration }) => iteration),
      this.steps.map(({ iteration }) => iteration),
    );
    assert.equal((await this.#store.listActions({ session_id, ...page })).length, this.steps.length);
  }
}

describe("a thread of the store that meets an error in the middle of commits", () => {
  test("is replaced: nothing acknowledged is lost, pending commits are written once, reads say to retry", async () => {
    await using scratch = await scratchFolder();
    const notices: string[] = [];
    {
      using threads = startedThreads();
      const tuning = { move_after_rows: 100, compact_after_fragments: 4 };
      await using store = await openStore(scratch.path, tuning, (text) => notices.push(text));
      const lanes = await Promise.all(Array.from({ length: LANES }, () => Lane.open(store)));
      for (let round = 0; round < ROUNDS; round += 1) {
        const thread = threads.newest();
        let advanced = 0;
        let isOver = false;
        const reading = Promise.all(lanes.slice(0, READERS).map((lane) => lane.readUntil(() => isOver)));
        const writing = lanes.map((lane) =>
          lane.advance(STEPS_A_ROUND, () => {
            if (++advanced === DIES_AFTER) upset(thread);
          }),
        );
        await Promise.all(writing).finally(() => {
          isOver = true;
        });
        await reading;
        assert.notEqual(threads.newest(), thread, "another thread took its place");
        assert.equal(notices.filter((text) => text.includes("thread died")).length, round + 1, notices.join("; "));
        for (const lane of lanes) await lane.verify();
      }
      await store.compact();
      for (const lane of lanes) await lane.verify();
    }
    const database = await connect(scratch.path);
    const steps = await (await database.openTable("agent_steps")).countRows();
    assert.equal(steps, LANES * STEPS_A_ROUND * ROUNDS, "rows of agent_steps");
    database.close();
  });
});
