import assert from "node:assert/strict";
import type { Message } from "../../../src/domain/conversation.ts";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import {
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
import { describeClaims, type OpenStore } from "./opened-store.ts";

const stepsOf = (store: Store, session_id: string): Promise<Step[]> =>
  store.listSteps({ session_id, limit: 500, offset: 0 });

export function history(open: OpenStore): void {
  describeClaims("a session's history", open, (claim) => {
    claim("guidance moves from the action to the session to exactly one step, each move whole", async (store) => {
      const owned = await mustCreate(store);
      const { session_id } = owned.session;
      const first = anAction({ session_id, payload: { guidance: "left" } });
      const second = anAction({ session_id, payload: { guidance: { turn: "right" } } });
      await mustCommit(store, { actions: [first, second] });

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
      return async (reader) => {
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
      };
    });

    claim("guidance stays with the session when the step that would consume it is refused", async (store) => {
      const owned = await mustCreate(store);
      const delivery = deliver(
        owned,
        anAction({ session_id: owned.session.session_id, payload: { guidance: "left" } }),
      );
      await mustCommit(store, delivery.batch);
      const refused = advance(delivery.owned, { step: { iteration: 1 }, actions: [consumed(delivery.action, 1)] });
      assert.equal((await store.commit(refused.batch)).kind, "fenced");
      return async (reader) => {
        assert.deepEqual(await reader.getSession(owned.session.session_id), delivery.owned.session);
        assert.deepEqual(await reader.getAction(delivery.action.action_id), delivery.action);
        assert.deepEqual(await stepsOf(reader, owned.session.session_id), []);
      };
    });

    claim("guidance that never reached a step bounces when the session ends", async (store) => {
      const owned = await mustCreate(store);
      const delivery = deliver(owned, anAction({ session_id: owned.session.session_id }));
      await mustCommit(store, delivery.batch);
      const bounced = settled(delivery.action, { receipt: "bounced", error: "the session was destroyed" });
      const session: Session = {
        ...delivery.owned.session,
        status: "stopped",
        stop_reason: "destroyed",
        pending_guidance: [],
        pending_action_ids: [],
        ended_at: aTime(),
      };
      const { owner } = delivery.owned;
      await mustCommit(store, { sessions: [{ kind: "update", session, owner }], actions: [bounced] });
      return async (reader) => {
        assert.deepEqual(await reader.getSession(session.session_id), session);
        assert.deepEqual(await reader.getAction(bounced.action_id), bounced);
      };
    });

    claim("a session in a conversation has one message per step with text, written with the step", async (store) => {
      const conversation_id = newId();
      let owned = await mustCreate(store, aSession({ conversation_id }));
      const messages: Message[] = [];
      for (const text of ["zero", null, "two"]) {
        const next = await mustAdvance(store, owned, { text });
        if (next.message) messages.push(next.message);
        owned = next.owned;
        assert.deepEqual(await store.listMessages({ conversation_id, limit: 10, offset: 0 }), messages);
      }
      return async (reader) => {
        assert.deepEqual(await reader.listMessages({ conversation_id, limit: 10, offset: 0 }), messages);
        assert.deepEqual(
          messages.map(({ iteration }) => iteration),
          [0, 2],
        );
        assert.equal((await stepsOf(reader, owned.session.session_id)).length, 3);
      };
    });

    claim("a session's message is written once, so that a step cannot be told twice", async (store) => {
      const zero = await mustAdvance(store, await mustCreate(store, aSession({ conversation_id: newId() })));
      const again = { ...advance(zero.owned).batch, messages: [zero.message as Message] };
      const id = zero.message?.message_id;
      assert.deepEqual(await store.commit(again), { kind: "exists", table: "conversation_messages", id });
      return async (reader) => assert.deepEqual(await stepsOf(reader, zero.step.session_id), [zero.step]);
    });

    claim("error rows come before the step that succeeded, and do not use up its iteration", async (store) => {
      const zero = await mustAdvance(store, await mustCreate(store), { state: { list: [1] } });
      const { session_id } = zero.step;
      let owned: OwnedSession = zero.owned;
      const rows = [zero.step];
      for (const error of ["timeout", "timeout again"]) {
        const failed = failedStep(owned, { error });
        await mustCommit(store, failed.batch);
        rows.push(failed.step);
        owned = failed.owned;
        assert.deepEqual(await store.latestStep({ session_id }), failed.step);
      }
      assert.equal((await store.getSession(session_id))?.iteration, 0);
      const one = await mustAdvance(store, owned, { state: { list: [1, 2] } });
      const two = await mustAdvance(store, one.owned, { state: { list: [1, 2, 3] } });
      rows.push(one.step, two.step);
      return async (reader) => {
        assert.deepEqual(await stepsOf(reader, session_id), rows);
        assert.deepEqual(await reader.latestStep({ session_id }), two.step);
        assert.deepEqual(await reader.getSession(session_id), two.owned.session);
      };
    });

    claim("an error row of an iteration that is not the next one is fenced", async (store) => {
      const zero = await mustAdvance(store, await mustCreate(store));
      const { session_id } = zero.step;
      for (const iteration of [0, 2]) {
        const outcome = await store.commit(failedStep(zero.owned, { iteration }).batch);
        assert.deepEqual(outcome, { kind: "fenced", session_id }, `iteration ${iteration}`);
      }
      return async (reader) => assert.deepEqual(await stepsOf(reader, session_id), [zero.step]);
    });

    claim("the first step may fail as well", async (store) => {
      const failed = failedStep(await mustCreate(store));
      await mustCommit(store, failed.batch);
      const zero = await mustAdvance(store, failed.owned);
      return async (reader) => assert.deepEqual(await stepsOf(reader, zero.step.session_id), [failed.step, zero.step]);
    });

    for (const status of ["done", "stopped", "error"] as const) {
      claim(`a session that ended as ${status} keeps its context and its result`, async (store) => {
        const agent_id = `agent of ${status}`;
        const zero = await mustAdvance(store, await mustCreate(store, aSession({ agent_id })), {
          state: { list: ["a".repeat(200)] },
        });
        const { owned } = await mustAdvance(store, zero.owned, {
          state: { list: ["a".repeat(200), "b"] },
          data: { answer: 42 },
          session: { status, ended_at: aTime(), last_error: status === "error" ? "no" : null },
        });
        const { session_id } = owned.session;
        return async (reader) => {
          assert.deepEqual(await reader.getSession(session_id), owned.session);
          assert.deepEqual(await reader.listSessions({ agent_id, status, limit: 10, offset: 0 }), [owned.session]);
          assert.deepEqual((await reader.getAgent(agent_id))?.latest, owned.session);
          const claimed = await reader.claimSession({ worker: WORKER, session_id });
          assert.deepEqual(claimed?.session, owned.session);
        };
      });
    }

    claim("a session that failed goes on where it stood after it was released and claimed again", async (store) => {
      const worker = "another worker";
      const list = ["a".repeat(200)];
      const zero = await mustAdvance(store, await mustCreate(store, aSession(), worker), { state: { list } });
      const failed = failedStep(zero.owned);
      const session: Session = { ...failed.owned.session, status: "error" };
      const { session_id } = session;
      await mustCommit(store, { ...failed.batch, sessions: [{ kind: "update", session, owner: zero.owned.owner }] });
      await store.releaseSessions({ worker });
      const claimed = (await store.claimSession({ worker, session_id })) as OwnedSession;
      assert.deepEqual(claimed.session, session);
      const one = await mustAdvance(store, claimed, {
        state: { list: [...list, "b"] },
        session: { status: "running", last_error: null },
      });
      const two = await mustAdvance(store, one.owned, { state: { list: [...list, "b", "c"] } });
      return async (reader) => {
        assert.deepEqual(await stepsOf(reader, session_id), [zero.step, failed.step, one.step, two.step]);
        assert.deepEqual(await reader.getSession(session_id), two.owned.session);
      };
    });
  });
}
