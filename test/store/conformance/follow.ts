import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Message } from "../../../src/domain/conversation.ts";
import type { CommittedEvent } from "../../../src/domain/event.ts";
import { newId } from "../../../src/domain/ids.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { OwnedSession, Store, Topic } from "../../../src/store/store.ts";
import {
  aFork,
  aMessage,
  anAction,
  aSession,
  failedStep,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
} from "../fixtures.ts";
import { randomFor } from "../random.ts";
import { Follower, rowsOf } from "./follower.ts";
import { describeClaims, IN_ORDER, type OpenStore, testOnFreshStore, testOnSharedStore } from "./opened-store.ts";

async function advanceBy(
  store: Store,
  from: OwnedSession,
  count: number,
): Promise<{ owned: OwnedSession; steps: Step[] }> {
  let owned = from;
  const steps: Step[] = [];
  for (let at = 0; at < count; at++) {
    const lines = (owned.session.context["lines"] ?? []) as string[];
    const next = await mustAdvance(store, owned, { state: { lines: [...lines.slice(-20), `line ${at}`] } });
    steps.push(next.step);
    owned = next.owned;
  }
  return { owned, steps };
}

export function following(open: OpenStore): void {
  describeClaims("following from a cursor", open, (claim) => {
    claim("a session gives the steps after it, failed attempts included", async (store) => {
      const first = await advanceBy(store, await mustCreate(store), 3);
      const failed = failedStep(first.owned);
      await mustCommit(store, failed.batch);
      const { steps } = await advanceBy(store, failed.owned, 2);
      const rows = [...first.steps, failed.step, ...steps];
      const { session_id } = failed.step;
      return async (reader) => {
        for (const after_iteration of [-1, 0, 2, 3]) {
          const follower = new Follower(reader, { session_id, after_iteration });
          await follower.untilStep(rows.at(-1) as Step);
          await follower.stop();
          const expected = rows.filter(({ iteration }) => iteration > after_iteration);
          assert.deepEqual(rowsOf(follower.events, "step"), expected, `after ${after_iteration}`);
        }
      };
    });

    claim("a long session gives every step once", async (store) => {
      const { steps } = await advanceBy(store, await mustCreate(store), 450);
      return async (reader) => {
        const follower = new Follower(reader, { session_id: (steps[0] as Step).session_id, after_iteration: 9 });
        await follower.untilStep(steps.at(-1) as Step);
        await follower.stop();
        assert.deepEqual(rowsOf(follower.events, "step"), steps.slice(10));
      };
    });

    claim("a fork gives its parent's steps too", async (store) => {
      const root = await advanceBy(store, await mustCreate(store), 3);
      const at = root.steps[1] as Step;
      const fork = await advanceBy(store, await mustCreate(store, aFork(root.owned.session, at)), 2);
      const { session_id } = fork.owned.session;
      return async (reader) => {
        const follower = new Follower(reader, { session_id, after_iteration: 0 });
        await follower.untilStep(fork.steps[1] as Step);
        await follower.stop();
        assert.deepEqual(rowsOf(follower.events, "step"), [at, ...fork.steps]);
      };
    });

    claim("a conversation gives the messages after it", async (store) => {
      const conversation_id = newId();
      const messages = Array.from({ length: 450 }, () => aMessage({ conversation_id }));
      await mustCommit(store, { messages });
      return async (reader) => {
        for (const at of [0, 220, 448]) {
          const follower = new Follower(reader, { conversation_id, after: (messages[at] as Message).message_id });
          await follower.untilMessage(messages.at(-1) as Message);
          await follower.stop();
          assert.deepEqual(rowsOf(follower.events, "message"), messages.slice(at + 1), `after ${at}`);
        }
      };
    });
  });

  describe("following", IN_ORDER, () => {
    const shared = testOnSharedStore(open);
    shared("without a cursor gives only what is committed from then on", async ({ store }) => {
      const conversation_id = newId();
      const before = await mustAdvance(store, await mustCreate(store, aSession({ conversation_id })));
      const { session_id } = before.step;
      const followers = [
        new Follower(store, { session_id }),
        new Follower(store, { conversation_id }),
        new Follower(store, { all: true }),
      ];
      const [ofSession, ofConversation, ofAll] = followers as [Follower, Follower, Follower];
      const next = await mustAdvance(store, before.owned);
      await Promise.all([ofSession.untilStep(next.step), ofAll.untilStep(next.step)]);
      await ofConversation.untilMessage(next.message as Message);
      for (const follower of followers) await follower.stop();
      assert.deepEqual(rowsOf(ofSession.events, "step"), [next.step]);
      assert.deepEqual(rowsOf(ofConversation.events, "message"), [next.message]);
      assert.deepEqual(rowsOf(ofAll.events, "step"), [next.step]);
    });

    shared(
      "a session gives its steps, its changes and its actions, a conversation its messages, all of it everything",
      async ({ store }) => {
        const conversation_id = newId();
        const owned = await mustCreate(store, aSession({ conversation_id }));
        const { session_id } = owned.session;
        const topics: Topic[] = [{ session_id, after_iteration: -1 }, { conversation_id }, { all: true }];
        const followers = topics.map((topic) => new Follower(store, topic));
        const [ofSession, ofConversation, ofAll] = followers as [Follower, Follower, Follower];

        const action = anAction({ session_id });
        await mustCommit(store, { actions: [action] });
        const next = await mustAdvance(store, owned, { actions: [settled(action)] });
        const stranger = await mustAdvance(store, await mustCreate(store, aSession({ conversation_id: newId() })));
        const last = await mustAdvance(store, next.owned);
        const isLast = (events: CommittedEvent[]) => rowsOf(events, "session").some(({ iteration }) => iteration === 1);
        await Promise.all([ofSession.until(isLast), ofAll.until(isLast)]);
        await ofConversation.untilMessage(last.message as Message);
        for (const follower of followers) await follower.stop();

        assert.deepEqual(rowsOf(ofSession.events, "step"), [next.step, last.step]);
        assert.deepEqual(rowsOf(ofSession.events, "session").at(-1), last.owned.session);
        assert.deepEqual(rowsOf(ofSession.events, "action").at(-1)?.receipt, "delivered");
        assert.deepEqual(rowsOf(ofSession.events, "message"), []);
        assert.deepEqual(rowsOf(ofConversation.events, "message"), [next.message, last.message]);
        assert.equal(ofConversation.events.length, 2);
        assert.deepEqual(rowsOf(ofAll.events, "step"), [next.step, stranger.step, last.step]);
        assert.deepEqual(rowsOf(ofAll.events, "message"), [next.message, stranger.message, last.message]);
        assert.ok(rowsOf(ofAll.events, "action").some(({ action_id }) => action_id === action.action_id));
      },
    );

    shared("loses nothing and gives nothing twice to those who come while rows are committed", async ({ store }, t) => {
      const random = randomFor(t);
      const conversation_id = newId();
      let owned = await mustCreate(store, aSession({ conversation_id }));
      const { session_id } = owned.session;
      const [steps, messages]: [Step[], Message[]] = [[], []];
      const arrivals: { follower: Follower; after: number }[] = [];
      for (let at = 0; at < 300; at++) {
        const committing = mustAdvance(store, owned);
        if (random.chance(0.1)) {
          const after = random.below(steps.length + 1) - 1;
          const topic = { session_id, after_iteration: after };
          arrivals.push({ follower: new Follower(store, topic), after });
          const message = messages[after];
          if (message) {
            const ofMessages = new Follower(store, { conversation_id, after: message.message_id });
            arrivals.push({ follower: ofMessages, after });
          }
        }
        const next = await committing;
        steps.push(next.step);
        messages.push(next.message as Message);
        owned = next.owned;
      }
      assert.ok(arrivals.length > 10);
      for (const { follower, after } of arrivals) {
        const count = steps.length - after - 1;
        await follower.until((events) => rowsOf(events, "step").length + rowsOf(events, "message").length >= count);
        await follower.stop();
        const got = [...rowsOf(follower.events, "step"), ...rowsOf(follower.events, "message")];
        const expected = [...steps, ...messages].filter(({ iteration }) => (iteration ?? 0) > after);
        assert.deepEqual(
          got,
          expected.filter((row) => "message_id" in row === "message_id" in (got[0] ?? {})),
          `after ${after}`,
        );
      }
    });

    shared("waits for a slow reader, who gets every step and the newest version of the session", async ({ store }) => {
      const owned = await mustCreate(store);
      const abort = new AbortController();
      const topic = { session_id: owned.session.session_id, after_iteration: -1 };
      const events = store.follow(topic, abort.signal)[Symbol.asyncIterator]();
      const pending = events.next();
      const { steps, owned: last } = await advanceBy(store, owned, 1_100);
      const got: CommittedEvent[] = [];
      for (let next = await pending; !next.done; next = await events.next()) {
        got.push(next.value);
        const sessions = rowsOf(got, "session");
        if (sessions.at(-1)?.iteration === 1_099 && rowsOf(got, "step").length >= 1_100) break;
      }
      abort.abort();
      assert.equal((await events.next()).done, true);
      assert.deepEqual(rowsOf(got, "step"), steps);
      assert.deepEqual(rowsOf(got, "session").at(-1), last.session);
    });

    shared(
      "of everything waits for a slow reader who is not too far behind, and gives every step",
      async ({ store }) => {
        const sessions = await Promise.all(Array.from({ length: 100 }, () => mustCreate(store)));
        const abort = new AbortController();
        const events = store.follow({ all: true }, abort.signal)[Symbol.asyncIterator]();
        const pending = events.next();
        const grown = await Promise.all(sessions.map((owned) => advanceBy(store, owned, 30)));
        const last = await mustCreate(store);
        const got: Step[] = [];
        for (let next = await pending; !next.done; next = await events.next()) {
          if (next.value.kind === "step") got.push(next.value.step);
          if (next.value.kind === "session" && next.value.session.session_id === last.session.session_id) break;
        }
        abort.abort();
        assert.equal(got.length, 3_000);
        const bySession = Map.groupBy(got, ({ session_id }) => session_id);
        for (const { owned, steps } of grown) assert.deepEqual(bySession.get(owned.session.session_id), steps);
      },
    );

    shared("without a cursor gives a slow reader nothing of the past", async ({ store }) => {
      const { owned } = await advanceBy(store, await mustCreate(store), 3);
      const { session_id } = owned.session;
      const abort = new AbortController();
      const events = store.follow({ session_id }, abort.signal)[Symbol.asyncIterator]();
      const pending = events.next();
      for (let at = 0; at < 15; at++)
        await mustCommit(store, { actions: Array.from({ length: 100 }, () => anAction({ session_id })) });
      const { steps } = await advanceBy(store, owned, 2);
      const got: Step[] = [];
      for (let next = await pending; !next.done; next = await events.next()) {
        if (next.value.kind === "step") got.push(next.value.step);
        if (got.at(-1)?.iteration === 4) break;
      }
      abort.abort();
      assert.deepEqual(got, steps);
    });

    shared(
      "ends when it is aborted: before it began, while it waits, and in the middle of the past",
      async ({ store }) => {
        const { steps } = await advanceBy(store, await mustCreate(store), 300);
        const { session_id } = steps[0] as Step;
        for await (const event of store.follow({ session_id, after_iteration: -1 }, AbortSignal.abort()))
          assert.fail(`${event.kind} after the end`);

        for (const topic of [{ all: true }, { session_id }, { conversation_id: newId() }] as Topic[])
          await new Follower(store, topic).stop();

        const abort = new AbortController();
        let seen = 0;
        for await (const _ of store.follow({ session_id, after_iteration: -1 }, abort.signal)) {
          seen++;
          if (seen === 10) abort.abort();
        }
        assert.equal(seen, 10);
      },
    );

    shared("can be left in the middle", async ({ store }) => {
      const { steps } = await advanceBy(store, await mustCreate(store), 3);
      const { session_id } = steps[0] as Step;
      for await (const event of store.follow({ session_id, after_iteration: 0 }, new AbortController().signal)) {
        assert.deepEqual(event, { kind: "step", step: steps[1] });
        break;
      }
    });

    testOnFreshStore(open)("ends when the store is closed", async ({ store }) => {
      const follower = new Follower(store, { all: true });
      await store.close();
      await follower.ended();
    });
  });
}
