import assert from "node:assert/strict";
import { describe } from "node:test";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import {
  advance,
  aMessage,
  anAction,
  aSession,
  deliver,
  mustAdvance,
  mustCommit,
  mustCreate,
  WORKER,
} from "../fixtures.ts";
import { IN_ORDER, type OpenStore, testOnFreshStore, testOnSharedStore } from "./opened-store.ts";

const OTHER = "worker-2";
const fenced = (session_id: string) => ({ kind: "fenced", session_id });

async function mustClaim(store: Store, session_id: string, worker = WORKER): Promise<OwnedSession> {
  const claimed = await store.claimSession({ worker, session_id });
  assert.ok(claimed, `${worker} could not claim ${session_id}`);
  return claimed;
}

/** Asserts that a stale owner's batch leaves no trace. */
async function assertFenced(store: Store, stale: OwnedSession): Promise<void> {
  const { session_id } = stale.session;
  const [before, latest] = [await store.getSession(session_id), await store.latestStep({ session_id })];
  const [action, message] = [anAction({ session_id }), aMessage()];
  const { batch } = advance(stale, { actions: [action] });
  assert.deepEqual(await store.commit({ ...batch, messages: [message] }), fenced(session_id));
  assert.deepEqual(await store.getSession(session_id), before);
  assert.deepEqual(await store.latestStep({ session_id }), latest);
  assert.equal(await store.getAction(action.action_id), null);
  assert.equal(await store.getMessage(message.message_id), null);
}

export function ownership(open: OpenStore): void {
  describe("ownership", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);
    // For tests that claim by id.
    const shared = testOnSharedStore(open);

    fresh("live sessions that nobody owns are claimed oldest first, a few at a time, each once", async ({ store }) => {
      const live = (["running", "waiting", "paused", "stopping"] as const).map((status) => aSession({ status }));
      const ended = (["stopped", "done", "error"] as const).map((status) => aSession({ status }));
      for (const session of [...ended, ...live.toReversed()])
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
      const mine = await mustCreate(store);

      const first = await store.claimSessions({ worker: WORKER, limit: 3 });
      assert.deepEqual(
        first.map(({ session }) => session),
        live.slice(0, 3),
      );
      const rest = await store.claimSessions({ worker: OTHER, limit: 500 });
      assert.deepEqual(
        rest.map(({ session }) => session),
        live.slice(3),
      );
      assert.deepEqual(await store.claimSessions({ worker: WORKER, limit: 500 }), []);
      for (const owned of [...first, ...rest, mine]) await mustAdvance(store, owned);
    });

    fresh("a session is claimed by one of many who want it at once", async ({ store }) => {
      const session = aSession();
      await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
      const workers = Array.from({ length: 20 }, (_, at) => `worker-${at}`);
      const { session_id } = session;
      const claims = await Promise.all(
        workers.map(async (worker, at) =>
          at % 2 === 0
            ? await store.claimSession({ worker, session_id })
            : (await store.claimSessions({ worker, limit: 1 }))[0],
        ),
      );
      const winners = claims.filter((claimed) => claimed !== null && claimed !== undefined);
      assert.equal(winners.length, 1);
      await mustAdvance(store, winners[0] as OwnedSession);
    });

    shared(
      "a session of any status can be claimed by its id, but not one that another worker owns, nor an unknown one",
      async ({ store }) => {
        const owned = await mustCreate(store);
        const { session_id } = owned.session;
        assert.equal(await store.claimSession({ worker: OTHER, session_id }), null);
        assert.equal(await store.claimSession({ worker: OTHER, session_id: "unknown" }), null);
        const again = await mustClaim(store, session_id);
        await mustAdvance(store, again);
        for (const status of ["stopped", "done", "error", "paused"] as const) {
          const session = aSession({ status });
          await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
          const claimed = await mustClaim(store, session.session_id, OTHER);
          assert.deepEqual(claimed.session, session);
          assert.equal(await store.claimSession({ worker: WORKER, session_id: session.session_id }), null, status);
        }
      },
    );

    shared("an owner that let go is fenced, before and after another one takes over", async ({ store }) => {
      const { owned: stale } = await mustAdvance(store, await mustCreate(store));
      const { session_id } = stale.session;
      await store.releaseSessions({ worker: WORKER, session_ids: [session_id] });
      await assertFenced(store, stale);
      const taken = await mustClaim(store, session_id, OTHER);
      assert.ok(taken.owner.epoch > stale.owner.epoch);
      assert.deepEqual(taken.session, stale.session);
      await assertFenced(store, stale);
      await mustAdvance(store, taken);
      await assertFenced(store, stale);
    });

    shared("an owner that let go and claimed again is fenced under its old epoch", async ({ store }) => {
      const stale = await mustCreate(store);
      const { session_id } = stale.session;
      await store.releaseSessions({ worker: WORKER });
      const renewed = await mustClaim(store, session_id);
      assert.ok(renewed.owner.epoch > stale.owner.epoch);
      await assertFenced(store, stale);
      await mustAdvance(store, renewed);
    });

    shared("of two writers with one ownership, only the one who saw the last write goes through", async ({ store }) => {
      const { session_id } = (await mustCreate(store)).session;
      const [one, two] = [await mustClaim(store, session_id), await mustClaim(store, session_id)];
      assert.deepEqual(one, two);
      const guided = deliver(one, anAction({ session_id }));
      await mustCommit(store, guided.batch);
      await assertFenced(store, two);
      // An owner that was refused finds everything in the row when it claims the session again.
      const seen = await mustClaim(store, session_id);
      assert.deepEqual(seen.session.pending_action_ids, [guided.action.action_id]);
      await mustAdvance(store, seen);
      await assertFenced(store, guided.owned);
    });

    shared("of two writers with one ownership that write at once, one goes through", async ({ store }) => {
      const created = await mustCreate(store);
      const { session_id } = created.session;
      const writers = [1, 2, 3].map(() => deliver(created, anAction({ session_id })));
      const outcomes = await Promise.all(writers.map(({ batch }) => store.commit(batch)));
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["committed", "fenced", "fenced"]);
      const winner = writers[outcomes.findIndex(({ kind }) => kind === "committed")];
      assert.deepEqual((await store.getSession(session_id))?.pending_action_ids, [winner?.action.action_id]);
      await mustAdvance(store, await mustClaim(store, session_id));
    });

    shared("a write that was refused or failed does not block the next", async ({ store }) => {
      const owned = await mustCreate(store);
      const taken = aMessage();
      await mustCommit(store, { messages: [taken] });
      const { batch } = advance(owned);
      assert.equal((await store.commit({ ...batch, messages: [taken] })).kind, "exists");
      await mustAdvance(store, owned);
    });

    fresh(
      "a worker lets go of the sessions it names, or of all of its own, and of nobody else's",
      async ({ store }) => {
        const [one, two, three] = [await mustCreate(store), await mustCreate(store), await mustCreate(store)];
        const others = await mustCreate(store, aSession(), OTHER);
        const idOf = (owned: OwnedSession): string => owned.session.session_id;
        await store.releaseSessions({ worker: OTHER, session_ids: [idOf(one)] });
        await store.releaseSessions({ worker: WORKER, session_ids: [idOf(others), "unknown"] });
        assert.deepEqual(await store.claimSessions({ worker: "worker-3", limit: 10 }), []);
        await store.releaseSessions({ worker: WORKER, session_ids: [idOf(two)] });
        const [claimed, ...more] = await store.claimSessions({ worker: "worker-3", limit: 10 });
        assert.deepEqual(claimed?.session, two.session);
        assert.equal(more.length, 0);
        await store.releaseSessions({ worker: WORKER });
        const rest = await store.claimSessions({ worker: "worker-3", limit: 10 });
        assert.deepEqual(
          rest.map(({ session }) => session),
          [one.session, three.session],
        );
        await mustAdvance(store, others);
      },
    );

    fresh(
      "a session that was released, or left by a store that was closed, does not count as crashed",
      async (opened) => {
        const { store, reopen } = opened;
        const { session_id } = (await mustCreate(store)).session;
        await store.releaseSessions({ worker: WORKER });
        assert.equal((await mustClaim(store, session_id)).after_crash, false);
        const reopened = await reopen();
        const [claimed] = await reopened.claimSessions({ worker: OTHER, limit: 10 });
        assert.equal(claimed?.session.session_id, session_id);
        assert.equal(claimed.after_crash, false);
      },
    );

    shared(
      "an owner's unfinished writes when it releases are complete for the next owner, or fenced",
      async ({ store }) => {
        for (let round = 0; round < 20; round++) {
          const owned = await mustCreate(store);
          const { session_id } = owned.session;
          const next = advance(owned);
          const [outcome, , claimed] = await Promise.all([
            store.commit(next.batch),
            store.releaseSessions({ worker: WORKER, session_ids: [session_id] }),
            store.claimSession({ worker: OTHER, session_id }),
          ]);
          const taken = claimed ?? (await mustClaim(store, session_id, OTHER));
          const iteration = outcome.kind === "committed" ? 0 : -1;
          assert.equal((await store.getSession(session_id))?.iteration, iteration);
          assert.equal(taken.session.iteration, iteration);
          await mustAdvance(store, taken);
        }
      },
    );

    fresh(
      "after a restart every live session is free again, and its old owner is fenced once it has a new one",
      async ({ store, reopen }) => {
        const { owned: stale } = await mustAdvance(store, await mustCreate(store));
        const done = await mustCreate(store, aSession({ status: "done" }));
        const reopened = await reopen();
        const claimed = await reopened.claimSessions({ worker: OTHER, limit: 10 });
        assert.deepEqual(
          claimed.map(({ session }) => session),
          [stale.session],
        );
        await assertFenced(reopened, stale);
        await mustAdvance(reopened, claimed[0] as OwnedSession);
        assert.deepEqual((await mustClaim(reopened, done.session.session_id, OTHER)).session, done.session);
      },
    );

    fresh("a worker of the same name is fenced under an epoch from before the restart", async ({ store, reopen }) => {
      const stale = await mustCreate(store);
      const reopened = await reopen();
      const renewed = await mustClaim(reopened, stale.session.session_id);
      assert.ok(renewed.owner.epoch > stale.owner.epoch);
      await assertFenced(reopened, stale);
      await mustAdvance(reopened, renewed);
    });
  });
}
