import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Action } from "../../../src/domain/action.ts";
import type { Store } from "../../../src/store/store.ts";
import { anAction, deliver, mustCommit, mustCreate, settled, WORKER } from "../fixtures.ts";
import { randomFor } from "../random.ts";
import { IN_ORDER, type OpenStore, testOnFreshStore } from "./opened-store.ts";

const AMPLE = { count: 100, bytes: 1_000_000 };
const HOUR = 3_600_000;
const inAnHour = (): string => new Date(Date.now() + HOUR).toISOString();
const guidanceActions = (count: number, more: Partial<Action> = {}): Action[] =>
  Array.from({ length: count }, (_, at) => anAction({ payload: { guidance: `word ${at}` }, ...more }));
const idsOf = (actions: readonly Action[]): string[] => actions.map(({ action_id }) => action_id);

async function claimOne(store: Store, worker = WORKER): Promise<Action> {
  const claimed = await store.claimActions({ worker, limit: 100 });
  assert.equal(claimed.length, 1);
  return claimed[0] as Action;
}

export function claimFollowing(open: OpenStore): void {
  describe("claiming what follows guidance", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);

    fresh(
      "takes the guidance that is next in order, as much as was asked for, and the rest later",
      async ({ store }) => {
        const words = guidanceActions(10);
        await mustCommit(store, { actions: words.toReversed() });
        const first = await claimOne(store);
        const following = await store.claimFollowing(first, { count: 4, bytes: AMPLE.bytes });
        assert.deepEqual([first, ...following], words.slice(0, 4));
        assert.deepEqual(await store.claimActions({ worker: WORKER, limit: 100 }), [], "one more meanwhile");
        await mustCommit(store, { actions: words.slice(0, 4).map((action) => settled(action)) });
        const next = await claimOne(store);
        assert.deepEqual([next, ...(await store.claimFollowing(next, AMPLE))], words.slice(4));
      },
    );

    fresh("does so if a worker here owns the session and guidance arrives piece by piece", async ({ store }) => {
      const { session } = await mustCreate(store);
      const words = guidanceActions(5, { session_id: session.session_id });
      for (const action of words) await mustCommit(store, { actions: [action] });
      const first = await claimOne(store);
      assert.deepEqual(await store.claimFollowing(first, AMPLE), words.slice(1));
      await mustCommit(store, { actions: words.map((action) => settled(action)) });
      assert.deepEqual(await store.claimActions({ worker: WORKER, limit: 100 }), []);
      assert.equal((await store.counts()).queue_depth, 0);
    });

    fresh("respects the requested number of bytes, including the first one", async ({ store }) => {
      const words = guidanceActions(4, { payload: { guidance: "x".repeat(1000) } });
      await mustCommit(store, { actions: words });
      const first = await claimOne(store);
      assert.deepEqual(idsOf(await store.claimFollowing(first, { count: 100, bytes: 3500 })), idsOf(words.slice(1, 3)));
    });

    fresh("takes along the next request of another kind, and nothing after it", async ({ store }) => {
      const [before, after] = [guidanceActions(3), guidanceActions(3)];
      const pause = anAction({ action_type: "agent_pause" });
      const resume = anAction({ action_type: "agent_resume" });
      const sent = [...before, pause, resume, ...after].map((action, at) => ({
        ...action,
        created_at: new Date(Date.parse(pause.created_at) + at).toISOString(),
      }));
      await mustCommit(store, { actions: sent });
      const first = await claimOne(store);
      assert.deepEqual(idsOf([first, ...(await store.claimFollowing(first, AMPLE))]), idsOf([...before, pause]));
    });

    fresh("lets that request overtake the guidance that does not fit", async ({ store }) => {
      const words = guidanceActions(8);
      const destroy = anAction({ action_type: "agent_destroy" });
      await mustCommit(store, { actions: [...words, destroy] });
      const first = await claimOne(store);
      const following = await store.claimFollowing(first, { count: 3, bytes: AMPLE.bytes });
      assert.deepEqual(idsOf([first, ...following]), idsOf([...words.slice(0, 3), destroy]));
      await mustCommit(store, { actions: [first, ...following].map((action) => settled(action)) });
      const next = await claimOne(store);
      assert.deepEqual(idsOf([next, ...(await store.claimFollowing(next, AMPLE))]), idsOf(words.slice(3)));
    });

    fresh("puts a request that is more urgent than the guidance first", async ({ store }) => {
      const words = guidanceActions(3);
      await mustCommit(store, { actions: words });
      const first = await claimOne(store);
      const pause = anAction({ action_type: "agent_pause", urgency: 9 });
      await mustCommit(store, { actions: [pause] });
      assert.deepEqual(idsOf(await store.claimFollowing(first, AMPLE)), [pause.action_id]);
    });

    fresh("holds back what comes after one that waits for its retry", async ({ store }) => {
      const words = guidanceActions(4);
      const waiting = { ...(words[2] as Action), attempts: 1, run_at: inAnHour() };
      const pause = anAction({ action_type: "agent_pause" });
      await mustCommit(store, { actions: [...words, pause] });
      await mustCommit(store, { actions: [waiting] });
      const first = await claimOne(store);
      assert.deepEqual(idsOf(await store.claimFollowing(first, AMPLE)), idsOf(words.slice(1, 2)));
    });

    fresh("gives nothing for an action that was not claimed, or was settled", async ({ store }) => {
      const words = guidanceActions(3);
      await mustCommit(store, { actions: words });
      assert.deepEqual(await store.claimFollowing(words[0] as Action, AMPLE), []);
      const first = await claimOne(store);
      await mustCommit(store, { actions: [settled(first)] });
      assert.deepEqual(await store.claimFollowing(first, AMPLE), []);
    });

    fresh("never hands out an action twice, whatever is told meanwhile", async ({ store }, t) => {
      const random = randomFor(t);
      const words = guidanceActions(300).map((action, at) => ({ ...action, session_id: `session-${at % 7}` }));
      const submitted = Promise.all(words.map((action) => store.commit({ actions: [action] })));
      const claimed: string[] = [];
      const work = async (worker: string): Promise<void> => {
        while (claimed.length < words.length) {
          for (const first of await store.claimActions({ worker, limit: 1 + random.below(3) })) {
            const run = [first, ...(await store.claimFollowing(first, { count: 1 + random.below(20), bytes: 1e6 }))];
            claimed.push(...idsOf(run));
            await mustCommit(store, { actions: run.map((action) => settled(action)) });
          }
          await new Promise(setImmediate);
        }
      };
      await Promise.all(["a", "b", "c"].map(work));
      await submitted;
      assert.equal(new Set(claimed).size, words.length);
      assert.equal(claimed.length, words.length);
    });

    fresh("ends with the process", async ({ store, reopen }) => {
      const words = guidanceActions(5);
      await mustCommit(store, { actions: words });
      assert.equal((await store.claimFollowing(await claimOne(store), AMPLE)).length, 4);
      const reopened = await reopen();
      const first = await claimOne(reopened, "worker-2");
      assert.deepEqual([first, ...(await reopened.claimFollowing(first, AMPLE))], words);
    });
  });

  describe("guidance that no step used yet", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);

    fresh("is counted in the queue and in the session, other requests are not", async ({ store, reopen }) => {
      assert.deepEqual((await store.unusedGuidance("nobody")).count, 0);
      const owned = await mustCreate(store);
      const { session_id } = owned.session;
      const words = guidanceActions(4, { session_id, payload: { guidance: `${"ü".repeat(500)}\u0000` } });
      await mustCommit(store, { actions: [...words, anAction({ session_id, action_type: "agent_pause" })] });
      await mustCommit(store, deliver(owned, words[0] as Action).batch);
      for (const opened of [async () => store, reopen]) {
        const at = await opened();
        const { count, bytes } = await at.unusedGuidance(session_id);
        assert.equal(count, 4);
        assert.ok(bytes > 4000 && bytes < 4200, `${bytes} bytes`);
      }
    });

    fresh("is read by the ids of its actions, in one call", async ({ store, reopen }) => {
      const words = guidanceActions(20);
      await mustCommit(store, { actions: words });
      const ids = [...idsOf(words), "unknown"];
      for (const opened of [async () => store, reopen]) {
        const at = await opened();
        const read = await at.getActions(ids);
        assert.deepEqual(
          new Map(read.map((action) => [action.action_id, action])),
          new Map(words.map((a) => [a.action_id, a])),
        );
      }
    });
  });
}
