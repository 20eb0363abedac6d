import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../../src/domain/step.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import {
  aConversation,
  advance,
  anAction,
  aSession,
  aTime,
  consumed,
  deliver,
  failedStep,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
  WORKER,
} from "../fixtures.ts";
import { type OpenStore, withStore } from "./opened-store.ts";

const stepsOf = (store: Store, session_id: string): Promise<Step[]> =>
  store.listSteps({ session_id, limit: 500, offset: 0 });

export function history(open: OpenStore): void {
  describe("a session's history", () => {
    test(
      "guidance moves from the action to the session to exactly one step, each move whole",
      withStore(open, async ({ store, reopen }) => {
        const owned = await mustCreate(store);
        const { session_id } = owned.session;
        const actions = ["left", { turn: "right" }].map((guidance) => anAction({ session_id, payload: { guidance } }));
        await mustCommit(store, { actions });

        const [first, second] = actions as [(typeof actions)[0], (typeof actions)[0]];
        const one = deliver(owned, first);
        await mustCommit(store, one.batch);
        const both = deliver(one.owned, second);
        await mustCommit(store, both.batch);
        const delivered = await store.getSession(session_id);
        assert.deepEqual(delivered?.pending_guidance, ["left", { turn: "right" }]);
        assert.deepEqual(delivered?.pending_action_ids, [first.action_id, second.action_id]);
        assert.deepEqual(await store.getAction(first.action_id), one.action);

        const used = [consumed(one.action, 0), consumed(both.action, 0)];
        const step = await mustAdvance(store, both.owned, { actions: used });
        const next = await mustAdvance(store, step.owned);
        for (const reader of [store, await reopen()]) {
          assert.deepEqual(await reader.getSession(session_id), next.owned.session);
          const steps = await stepsOf(reader, session_id);
          assert.deepEqual(
            steps.map(({ guidance, action_ids }) => ({ guidance, action_ids })),
            [
              { guidance: ["left", { turn: "right" }], action_ids: [first.action_id, second.action_id] },
              { guidance: [], action_ids: [] },
            ],
          );
          assert.deepEqual(await reader.getAction(first.action_id), used[0]);
          assert.deepEqual(await reader.getAction(second.action_id), used[1]);
        }
      }),
    );

    test(
      "guidance stays with the session when the step that would consume it is refused",
      withStore(open, async ({ store, reopen }) => {
        const owned = await mustCreate(store);
        const action = anAction({ session_id: owned.session.session_id, payload: { guidance: "left" } });
        await mustCommit(store, { actions: [action] });
        const given = deliver(owned, action);
        await mustCommit(store, given.batch);
        const refused = advance(given.owned, { step: { iteration: 1 }, actions: [consumed(given.action, 1)] });
        assert.equal((await store.commit(refused.batch)).kind, "fenced");
        for (const reader of [store, await reopen()]) {
          assert.deepEqual(await reader.getSession(owned.session.session_id), given.owned.session);
          assert.deepEqual(await reader.getAction(action.action_id), given.action);
        }
      }),
    );

    test(
      "guidance that never reached a step bounces when the session ends",
      withStore(open, async ({ store, reopen }) => {
        const owned = await mustCreate(store);
        const given = deliver(owned, anAction({ session_id: owned.session.session_id }));
        await mustCommit(store, given.batch);
        const bounced = settled(given.action, { receipt: "bounced", error: "the session was destroyed" });
        const ended_at = aTime();
        const session = {
          ...given.owned.session,
          status: "stopped" as const,
          stop_reason: "destroyed" as const,
          pending_guidance: [],
          pending_action_ids: [],
          updated_at: ended_at,
          ended_at,
        };
        await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }], actions: [bounced] });
        for (const reader of [store, await reopen()]) {
          assert.deepEqual(await reader.getSession(session.session_id), session);
          assert.deepEqual(await reader.getAction(bounced.action_id), bounced);
        }
      }),
    );

    test(
      "a session in a conversation has one message per step with text, written with the step",
      withStore(open, async ({ store, reopen }) => {
        const conversation = aConversation();
        const { conversation_id } = conversation;
        await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
        let owned = await mustCreate(store, aSession({ conversation_id }));
        const messages = [];
        for (const text of ["zero", null, "two"]) {
          const next = await mustAdvance(store, owned, { text });
          if (next.message) messages.push(next.message);
          owned = next.owned;
          assert.deepEqual(await store.listMessages({ conversation_id, limit: 10, offset: 0 }), messages);
        }
        assert.deepEqual(
          messages.map(({ iteration }) => iteration),
          [0, 2],
        );
        const repeated = advance(owned);
        const again = { ...repeated.batch, messages: [{ ...messages[0], conversation_id } as (typeof messages)[0]] };
        assert.equal((await store.commit(again)).kind, "exists");
        const reopened = await reopen();
        assert.deepEqual(await reopened.listMessages({ conversation_id, limit: 10, offset: 0 }), messages);
        assert.equal((await stepsOf(reopened, owned.session.session_id)).length, 3);
      }),
    );

    test(
      "error rows come before the step that succeeded, and do not use up its iteration",
      withStore(open, async ({ store, reopen }) => {
        const zero = await mustAdvance(store, await mustCreate(store), { state: { list: [1] } });
        let owned: OwnedSession = zero.owned;
        const rows = [zero.step];
        for (const error of ["timeout", "timeout again"]) {
          const failed = failedStep(owned, { error });
          await mustCommit(store, failed.batch);
          rows.push(failed.step);
          owned = failed.owned;
          assert.deepEqual(await store.latestStep({ session_id: owned.session.session_id }), failed.step);
        }
        assert.equal((await store.getSession(owned.session.session_id))?.iteration, 0);
        const one = await mustAdvance(store, owned, { state: { list: [1, 2] } });
        const two = await mustAdvance(store, one.owned, { state: { list: [1, 2, 3] } });
        rows.push(one.step, two.step);
        for (const reader of [store, await reopen()]) {
          assert.deepEqual(await stepsOf(reader, owned.session.session_id), rows);
          assert.deepEqual(await reader.latestStep({ session_id: owned.session.session_id }), two.step);
          assert.deepEqual(await reader.getSession(owned.session.session_id), two.owned.session);
        }
      }),
    );

    test(
      "an error row of an iteration that is not the next one is fenced",
      withStore(open, async ({ store }) => {
        const zero = await mustAdvance(store, await mustCreate(store));
        for (const iteration of [0, 2]) {
          const outcome = await store.commit(failedStep(zero.owned, { iteration }).batch);
          assert.deepEqual(outcome, { kind: "fenced", session_id: zero.step.session_id }, `iteration ${iteration}`);
        }
        assert.deepEqual(await stepsOf(store, zero.step.session_id), [zero.step]);
      }),
    );

    test(
      "the first step may fail as well",
      withStore(open, async ({ store, reopen }) => {
        const failed = failedStep(await mustCreate(store));
        await mustCommit(store, failed.batch);
        const zero = await mustAdvance(store, failed.owned);
        for (const reader of [store, await reopen()])
          assert.deepEqual(await stepsOf(reader, zero.step.session_id), [failed.step, zero.step]);
      }),
    );

    for (const status of ["done", "stopped", "error"] as const) {
      test(
        `a session that ended as ${status} keeps its context and its result, and can be claimed with them`,
        withStore(open, async ({ store, reopen }) => {
          let { owned } = await mustAdvance(store, await mustCreate(store), { state: { list: ["a".repeat(500)] } });
          ({ owned } = await mustAdvance(store, owned, {
            state: { list: ["a".repeat(500), "b"] },
            data: { answer: 42 },
            session: { status, ended_at: aTime(), last_error: status === "error" ? "no" : null },
          }));
          const { session_id } = owned.session;
          assert.deepEqual(await store.getSession(session_id), owned.session);
          const reopened = await reopen();
          assert.deepEqual(await reopened.getSession(session_id), owned.session);
          assert.deepEqual(await reopened.listSessions({ status, limit: 10, offset: 0 }), [owned.session]);
          const claimed = await reopened.claimSession({ worker: "worker-2", session_id });
          assert.deepEqual(claimed?.session, owned.session);
        }),
      );
    }

    test(
      "a session that failed goes on where it stood after it was claimed again",
      withStore(open, async ({ store, reopen }) => {
        const list = ["a".repeat(500)];
        const zero = await mustAdvance(store, await mustCreate(store), { state: { list } });
        const failed = failedStep(zero.owned);
        const session = { ...failed.owned.session, status: "error" as const };
        await mustCommit(store, {
          ...failed.batch,
          sessions: [{ kind: "update", session, owner: zero.owned.owner }],
        });
        await store.releaseSessions({ worker: WORKER });
        const reopened = await reopen();
        assert.deepEqual(await reopened.claimSessions({ worker: WORKER, limit: 10 }), []);
        const claimed = await reopened.claimSession({ worker: WORKER, session_id: session.session_id });
        assert.deepEqual(claimed?.session, session);
        const one = await mustAdvance(reopened, claimed as OwnedSession, {
          state: { list: [...list, "b"] },
          session: { status: "running", last_error: null },
        });
        assert.deepEqual(await stepsOf(reopened, session.session_id), [zero.step, failed.step, one.step]);
      }),
    );
  });
}
