import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommittedEvent } from "../../src/domain/event.ts";
import { ALL_CHANNEL, CommitFeed, conversationChannel, sessionChannel } from "../../src/store/follow.ts";
import { ChangeRelay } from "../../src/store/postgres/change-relay.ts";
import { Pool } from "../../src/store/postgres/connections.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { PostgresReads } from "../../src/store/postgres/postgres-reads.ts";
import { Tables } from "../../src/store/postgres/tables.ts";
import { SCHEMA } from "../../src/store/schema.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { eventually } from "../server/server-fixture.ts";
import { aConversation, aMessage, failedStep, mustAdvance, mustCommit, mustCreate } from "./fixtures.ts";

/** A relay on the database that another process's store writes to; the test passes on the notifications, or does not. */
class Scene implements AsyncDisposable {
  readonly store: Store;
  readonly feed = new CommitFeed();
  readonly relay: ChangeRelay;
  readonly heard: CommittedEvent[] = [];
  readonly #end: () => Promise<void>;

  private constructor(store: Store, pool: Pool, end: () => Promise<void>) {
    this.store = store;
    this.relay = new ChangeRelay(new PostgresReads(pool, new Tables(SCHEMA)), this.feed);
    this.#end = end;
  }

  static async open(): Promise<Scene> {
    const { url, remove } = await postgresHome();
    const store = await openPostgresStore({ url });
    const pool = new Pool(url, 2);
    return new Scene(store, pool, async () => {
      await pool.close();
      await store.close();
      await remove();
    });
  }

  async follow(channel: string): Promise<() => void> {
    const begun = this.relay.begin(channel);
    const stop = this.feed.listen(channel, (event) => this.heard.push(event));
    await begun;
    return stop;
  }

  get texts(): string[] {
    return this.heard.flatMap((event) =>
      event.kind === "step"
        ? (event.step.text ?? `error ${event.step.error}`)
        : event.kind === "message"
          ? (event.message.text ?? "")
          : [],
    );
  }

  async steps(owned: OwnedSession, ...texts: string[]): Promise<OwnedSession> {
    let last = owned;
    for (const text of texts) last = (await mustAdvance(this.store, last, { step: { text } })).owned;
    return last;
  }

  async until(expected: string[]): Promise<void> {
    await eventually(expected.join(), async () => this.texts.length >= expected.length);
    // A duplicate would arrive now.
    await this.relay.lookThrough();
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(this.texts, expected);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}

await onPostgres(() => {
  test("the relay reads on where a notification was lost, and hands each step on once", async () => {
    await using scene = await Scene.open();
    const owned = await mustCreate(scene.store);
    const { session_id } = owned.session;
    const before = await scene.steps(owned, "before");
    await scene.follow(sessionChannel(session_id));
    const later = await scene.steps(before, "one", "two", "three");
    await scene.relay.lookThrough();
    await scene.until(["one", "two", "three"]);
    await scene.steps(later, "four", "five");
    // Notifications that arrive late, twice and out of order.
    for (const iteration of [4, 3, 4, 0]) scene.relay.sessionChanged(session_id, { iteration, error_rows: 0 }, []);
    await scene.until(["one", "two", "three", "four", "five"]);
    const last = scene.heard.findLast((event) => event.kind === "session");
    assert.equal(last?.kind === "session" && last.session.iteration, 5, "the row comes after its steps");
  });

  test("a commit of this process that continues the rows is passed on without a read, one after a gap once the gap is read", async () => {
    await using scene = await Scene.open();
    const owned = await mustCreate(scene.store);
    const { session_id } = owned.session;
    await scene.follow(sessionChannel(session_id));
    const commit = async (at: OwnedSession, text: string, isHeard: boolean): Promise<OwnedSession> => {
      const { step, owned: next } = await mustAdvance(scene.store, at, { step: { text } });
      const [before, after] = [at, next].map(({ session: { iteration } }) => ({ iteration, error_rows: 0 }));
      const steps = [{ step, error_number: null }];
      if (isHeard) scene.relay.committed([{ session: next.session, before, after, steps } as never], [], []);
      return next;
    };
    const first = await commit(owned, "one", true);
    assert.deepEqual(scene.texts, ["one"], "at once");
    const second = await commit(first, "two", false);
    await commit(second, "three", true);
    assert.deepEqual(scene.texts, ["one"], "not before what is missing");
    await scene.until(["one", "two", "three"]);
  });

  test("rows of failed attempts are handed on in their place", async () => {
    await using scene = await Scene.open();
    const owned = await mustCreate(scene.store);
    await scene.follow(ALL_CHANNEL);
    const failed = failedStep(owned, { error: "no" });
    await mustCommit(scene.store, failed.batch);
    await scene.steps(failed.owned, "one");
    const { session_id } = owned.session;
    scene.relay.sessionChanged(session_id, { iteration: -1, error_rows: 0 }, []);
    await scene.until(["error no", "one"]);
  });

  test("messages of a conversation come in order and once, from where it stood when somebody began to follow", async () => {
    await using scene = await Scene.open();
    const conversation = aConversation();
    const { conversation_id } = conversation;
    await mustCommit(scene.store, { conversations: [{ kind: "create", conversation }] });
    const say = (text: string): Promise<void> =>
      mustCommit(scene.store, { messages: [aMessage({ conversation_id, text })] });
    await say("before");
    await scene.follow(conversationChannel(conversation_id));
    await say("one");
    await say("two");
    scene.relay.messagesAdded(conversation_id, 3);
    scene.relay.messagesAdded(conversation_id, 2);
    await scene.until(["one", "two"]);
  });

  test("nothing is read that nobody follows, nor passed on to a follower that left", async () => {
    await using scene = await Scene.open();
    const owned = await mustCreate(scene.store);
    const { session_id } = owned.session;
    const stop = await scene.follow(sessionChannel(session_id));
    const later = await scene.steps(owned, "one");
    scene.relay.sessionChanged(session_id, { iteration: -1, error_rows: 0 }, []);
    stop();
    await scene.steps(later, "two");
    scene.relay.sessionChanged(session_id, { iteration: 0, error_rows: 0 }, []);
    await scene.relay.lookThrough();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(scene.texts, []);
    await scene.follow(sessionChannel(session_id));
    await scene.relay.lookThrough();
    await scene.until([]);
  });
});
