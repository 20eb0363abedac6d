import assert from "node:assert/strict";
import { once } from "node:events";
import { describe } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Action } from "../../../src/domain/action.ts";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Store } from "../../../src/store/store.ts";
import { anAction, aSession, deliver, mustCommit, mustCreate, settled, WORKER } from "../fixtures.ts";
import { randomFor } from "../random.ts";
import { IN_ORDER, type OpenStore, testOnFreshStore } from "./opened-store.ts";

const fromNow = (milliseconds: number): string => new Date(Date.now() + milliseconds).toISOString();
const HOUR = 3_600_000;

const claimIds = async (store: Store, limit = 100, worker = WORKER): Promise<string[]> =>
  (await store.claimActions({ worker, limit })).map(({ action_id }) => action_id);

/** Waits until the store signals that there may be work. */
async function nextWork(store: Store): Promise<void> {
  const called = new EventTarget();
  const stop = store.onWork(() => called.dispatchEvent(new Event("work")));
  await once(called, "work");
  stop();
}

export function actions(open: OpenStore): void {
  describe("claiming actions", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);
    fresh("goes by urgency, then arrival, one per session at a time", async ({ store }) => {
      const [low, urgent, later, most] = [0, 5, 5, 9].map((urgency) => anAction({ urgency }));
      const order = [most, urgent, later, low] as Action[];
      // Arrival is a time, not a position in a batch.
      await mustCommit(store, { actions: [later, low] as Action[] });
      await mustCommit(store, { actions: [most, urgent] as Action[] });
      for (const action of order) {
        assert.deepEqual(await store.claimActions({ worker: WORKER, limit: 100 }), [action]);
        assert.deepEqual(await claimIds(store), [], "a second one before the first was committed");
        assert.deepEqual(await claimIds(store, 100, "worker-2"), [], "by another worker");
        await mustCommit(store, { actions: [settled(action)] });
      }
      assert.deepEqual(await claimIds(store), []);
    });

    fresh("does so too if a worker here owns the session and the actions arrive separately", async ({ store }) => {
      const { session } = await mustCreate(store);
      const anOwned = (urgency: number) => anAction({ session_id: session.session_id, urgency });
      const [low, urgent] = [anOwned(0), anOwned(5)];
      await mustCommit(store, { actions: [low] });
      await mustCommit(store, { actions: [urgent] });
      assert.deepEqual(await claimIds(store), [urgent.action_id]);
      const most = anOwned(9);
      await mustCommit(store, { actions: [most] });
      assert.deepEqual(await claimIds(store), [], "one more before the first was committed");
      for (const [done, next] of [
        [urgent, most],
        [most, low],
      ] as const) {
        await mustCommit(store, { actions: [settled(done)] });
        assert.deepEqual(await claimIds(store), [next.action_id]);
      }
      await mustCommit(store, { actions: [settled(low)] });
      assert.deepEqual(await claimIds(store), []);
    });

    const changes: [what: string, change: Partial<Session>][] = [
      ["only whether its session goes on", {}],
      ["more of its session", { options: { max_steps: 7 }, pending_guidance: ["and this"], pending_action_ids: ["x"] }],
    ];
    for (const [what, change] of changes)
      fresh(`is not needed for an action that overtakes none and changes ${what}`, async ({ store }) => {
        const { session, owner } = await mustCreate(store);
        const { session_id } = session;
        const resting = await mustCreate(store);
        await mustCommit(store, { actions: [anAction({ session_id: resting.session.session_id })] });
        const paused = { ...session, ...change, status: "paused" as const, updated_at: fromNow(1) };
        const pauseNow = async () => {
          const action = settled(anAction({ session_id, urgency: 9, metadata: { by: "ann" } }));
          const batch = { sessions: [{ kind: "update" as const, session: paused, owner }], actions: [action] };
          const { kind } = await store.commit({ ...batch, only_if_queue_empty: true });
          const isWritten = kind === "committed";
          assert.deepEqual(await store.getAction(action.action_id), isWritten ? action : null);
          assert.deepEqual(await store.getSession(session_id), isWritten ? paused : session);
          return kind;
        };
        const waiting = anAction({ session_id });
        await mustCommit(store, { actions: [waiting] });
        assert.equal(await pauseNow(), "queue_not_empty", "one waits");
        await store.claimActions({ worker: WORKER, limit: 100 });
        assert.equal(await pauseNow(), "queue_not_empty", "one is under way");
        await mustCommit(store, { actions: [{ ...waiting, attempts: 1, run_at: fromNow(HOUR) }] });
        assert.equal(await pauseNow(), "queue_not_empty", "one waits for its retry");
        await mustCommit(store, { actions: [settled(waiting)] });
        assert.equal(await pauseNow(), "committed");
        assert.deepEqual(await claimIds(store), [], "what was never in the queue is not handed out");
      });

    fresh("breaks a tie of urgency and time by id", async ({ store }) => {
      const created_at = fromNow(0);
      const tied = ["a", "b", "c"].map((action_id) => anAction({ action_id, created_at }));
      await mustCommit(store, { actions: tied.toReversed() });
      for (const action of tied) {
        assert.deepEqual(await claimIds(store), [action.action_id]);
        await mustCommit(store, { actions: [settled(action)] });
      }
    });

    fresh("hands out at most as many as asked for, of different sessions, and the others later", async ({ store }) => {
      const all = Array.from({ length: 10 }, (_, at) => anAction({ session_id: `session-${at % 5}` }));
      await mustCommit(store, { actions: all });
      const first = await store.claimActions({ worker: WORKER, limit: 3 });
      const second = await store.claimActions({ worker: "worker-2", limit: 100 });
      assert.equal(first.length, 3);
      const claimed = [...first, ...second].map(({ action_id }) => action_id);
      assert.deepEqual(
        claimed.toSorted(),
        all
          .slice(0, 5)
          .map(({ action_id }) => action_id)
          .toSorted(),
      );
    });

    fresh("never hands out an action twice, whoever asks meanwhile", async ({ store }, t) => {
      const random = randomFor(t);
      // Some of the sessions are owned here; the others are unknown.
      for (let at = 0; at < 20; at++) await mustCreate(store, aSession({ session_id: `session-${at}` }));
      const all = Array.from({ length: 300 }, (_, at) =>
        anAction({ session_id: `session-${at % 40}`, urgency: random.below(10) }),
      );
      const submitted = Promise.all(all.map((action) => store.commit({ actions: [action] })));
      if (random.below(2) === 0) await submitted;
      const claimed: Action[] = [];
      const busy = new Set<string>();
      const work = async (worker: string): Promise<void> => {
        while (claimed.length < all.length) {
          const mine = await store.claimActions({ worker, limit: 1 + random.below(5) });
          // An engine may respond without a turn of the event loop, which the others' commits need to finish.
          if (mine.length === 0) await setImmediate();
          for (const action of mine) {
            assert.ok(!busy.has(action.session_id), `two actions of ${action.session_id} at once`);
            busy.add(action.session_id);
          }
          claimed.push(...mine);
          for (const action of mine) {
            const done = store.commit({ actions: [settled(action, { outcome: "failed" })] });
            busy.delete(action.session_id);
            await done;
          }
        }
      };
      await Promise.all(["a", "b", "c", "d"].map(work));
      await submitted;
      const ids = claimed.map(({ action_id }) => action_id);
      assert.equal(new Set(ids).size, ids.length);
      assert.equal(ids.length, all.length);
      assert.equal((await store.counts()).queue_depth, 0);
    });

    fresh("holds back the later ones of a session while one waits for its retry", async ({ store, reopen }) => {
      const [first, later] = [anAction(), anAction()];
      const stranger = anAction({ session_id: "session-2" });
      await mustCommit(store, { actions: [first, later] });
      assert.deepEqual(await claimIds(store), [first.action_id]);
      const waiting = { ...first, attempts: 1, run_at: fromNow(HOUR), error: "timeout" };
      await mustCommit(store, { actions: [waiting] });
      await mustCommit(store, { actions: [anAction(), stranger] });
      assert.deepEqual(await claimIds(store), [stranger.action_id]);
      const reopened = await reopen();
      assert.deepEqual(await claimIds(reopened), [stranger.action_id]);
      assert.deepEqual(await reopened.getAction(first.action_id), waiting);

      const due = { ...waiting, run_at: fromNow(-1) };
      await mustCommit(reopened, { actions: [due] });
      assert.deepEqual(await reopened.claimActions({ worker: WORKER, limit: 100 }), [due]);
      await mustCommit(reopened, { actions: [settled(due, { attempts: 2 })] });
      assert.deepEqual(await claimIds(reopened), [later.action_id]);
    });

    fresh(
      "gives an action again that was committed as waiting for a retry, once its time has come",
      async ({ store }) => {
        const action = anAction();
        await mustCommit(store, { actions: [action] });
        assert.deepEqual(await claimIds(store), [action.action_id]);
        const run_at = fromNow(300);
        await mustCommit(store, { actions: [{ ...action, attempts: 1, run_at }] });
        let claimed = await claimIds(store);
        for (; claimed.length === 0; claimed = await claimIds(store)) await nextWork(store);
        assert.deepEqual(claimed, [action.action_id]);
        assert.ok(Date.now() >= Date.parse(run_at), "too early");
      },
    );

    fresh(
      "ends with the process: what was claimed and not committed is claimed again after a restart",
      async ({ store, reopen }) => {
        const [begun, done] = [anAction(), anAction({ session_id: "session-2" })];
        await mustCommit(store, { actions: [begun, done] });
        assert.equal((await claimIds(store)).length, 2);
        await mustCommit(store, { actions: [settled(done)] });
        const reopened = await reopen();
        assert.deepEqual(await reopened.claimActions({ worker: "worker-2", limit: 100 }), [begun]);
      },
    );

    fresh("goes on to the next action as soon as the guidance of the first was delivered", async ({ store }) => {
      const owned = await mustCreate(store);
      const { session_id } = owned.session;
      const [first, second] = [anAction({ session_id }), anAction({ session_id })];
      await mustCommit(store, { actions: [first, second] });
      assert.deepEqual(await claimIds(store), [first.action_id]);
      await mustCommit(store, deliver(owned, first).batch);
      assert.deepEqual(await claimIds(store), [second.action_id]);
    });

    fresh(
      "is announced: by a new action, and by one that makes way for the next, until the listener leaves",
      async ({ store }) => {
        const [first, second] = [anAction(), anAction()];
        const submitted = nextWork(store);
        await mustCommit(store, { actions: [first, second] });
        await submitted;
        assert.deepEqual(await claimIds(store), [first.action_id]);

        const freed = nextWork(store);
        await mustCommit(store, { actions: [settled(first)] });
        await freed;
        assert.deepEqual(await claimIds(store), [second.action_id]);

        let calls = 0;
        const stop = store.onWork(() => calls++);
        stop();
        const heard = nextWork(store);
        await mustCommit(store, { actions: [anAction({ session_id: newId() })] });
        await heard;
        assert.equal(calls, 0);
      },
    );

    fresh("is mirrored in the counts: how many wait, and since when", async ({ store, reopen }) => {
      const nothing = { queue_depth: 0, oldest_pending_at: null };
      const pending = async (at: Store) => {
        const { queue_depth, oldest_pending_at } = await at.counts();
        return { queue_depth, oldest_pending_at };
      };
      assert.deepEqual(await pending(store), nothing);
      const [first, second, third] = [anAction(), anAction(), anAction({ session_id: "session-2" })];
      await mustCommit(store, { actions: [third, second, first, settled(anAction())] });
      assert.deepEqual(await pending(store), { queue_depth: 3, oldest_pending_at: first.created_at });
      await claimIds(store);
      assert.deepEqual(await pending(store), { queue_depth: 3, oldest_pending_at: first.created_at });
      await mustCommit(store, { actions: [settled(first)] });
      const rest = { queue_depth: 2, oldest_pending_at: second.created_at };
      assert.deepEqual(await pending(store), rest);
      const reopened = await reopen();
      assert.deepEqual(await pending(reopened), rest);
      await mustCommit(reopened, { actions: [settled(second), settled(third)] });
      assert.deepEqual(await pending(reopened), nothing);
    });
  });
}
