import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "@lancedb/lancedb";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { aConversation, anAction, aSession, mustAdvance, mustCommit, mustCreate, settled } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { assertCoded, openStore } from "./store-folder.ts";

/** Megabytes: enough for all that is done here but one read. */
const HEAP_MB = 96;
const STATES = 160;
const STATE_CHARACTERS = 1_000_000;
const DEATHS = 3;
const LANES = 8;
const STEPS_A_ROUND = 40;

/** A session whose states are more than the thread's heap. */
async function writeLargeStates(store: Store): Promise<string> {
  let owned = await mustCreate(store);
  for (let n = 0; n < STATES; n += 1) {
    const state: JsonObject = { n, text: String.fromCharCode(97 + (n % 26)).repeat(STATE_CHARACTERS) };
    owned = (await mustAdvance(store, owned, { state })).owned;
  }
  return owned.session.session_id;
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

  async advance(count: number): Promise<void> {
    const { agent_id, session_id } = this.#owned.session;
    for (let left = count; left > 0; left -= 1) {
      const next = await mustAdvance(this.#store, this.#owned);
      this.#owned = next.owned;
      this.steps.push(next.step);
      await mustCommit(this.#store, { actions: [settled(anAction({ agent_id, session_id }), { receipt: "bounced" })] });
    }
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

describe("a thread of the store that dies", () => {
  test("is replaced: commits under way are written once, reads say to ask again", async () => {
    await using scratch = await scratchFolder();
    const notices: string[] = [];
    const tuning = { heap_mb: HEAP_MB, move_after_rows: 100, compact_after_fragments: 4 };
    {
      await using store = await openStore(scratch.path, tuning, (text) => notices.push(text));
      const session_id = await writeLargeStates(store);
      const lanes = await Promise.all(Array.from({ length: LANES }, () => Lane.open(store)));
      for (let death = 1; death <= DEATHS; death += 1) {
        const writing = Promise.all(lanes.map((lane) => lane.advance(STEPS_A_ROUND)));
        await assert.rejects(store.listSteps({ session_id, limit: STATES, offset: 0 }), (error) => {
          assertCoded(error, ["store_unavailable"]);
          return true;
        });
        await writing;
        assert.equal(notices.filter((text) => text.includes("thread died")).length, death, notices.join("; "));
        for (const lane of lanes) await lane.verify();
      }
      assert.equal((await store.listSteps({ session_id, min_iteration: STATES - 2, limit: 5, offset: 0 })).length, 2);
      await store.compact();
      for (const lane of lanes) await lane.verify();
    }
    const database = await connect(scratch.path);
    const steps = await (await database.openTable("agent_steps")).countRows();
    assert.equal(steps, STATES + LANES * STEPS_A_ROUND * DEATHS, "rows of agent_steps");
    database.close();
  });
});
