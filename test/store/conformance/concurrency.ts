import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import { aMessage, anAction, aSession, consumed, deliver, mustAdvance, mustCommit, mustCreate } from "../fixtures.ts";
import { type Random, randomFor } from "../random.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";

const SESSIONS = 60;
const STEPS = 12;

const lineOf = (iteration: number): string => `line ${iteration} ${"x".repeat(20)}`;
const stateAt = (iteration: number): { lines: string[] } => ({
  lines: Array.from({ length: iteration + 1 }, (_, at) => lineOf(at)),
});

/** P6: what was acknowledged is in every read that begins afterwards. */
async function assertSeen(store: Store, session_id: string, iteration: number, random: Random): Promise<void> {
  const of = { session_id };
  switch (random.below(5)) {
    case 0:
      assert.equal((await store.getSession(session_id))?.iteration, iteration);
      break;
    case 1:
      assert.equal((await store.latestStep(of))?.iteration, iteration);
      break;
    case 2: {
      const steps = await store.listSteps({ ...of, limit: 500, offset: 0 });
      assert.deepEqual(
        steps.map((step) => step.iteration),
        Array.from({ length: iteration + 1 }, (_, at) => at),
      );
      assert.deepEqual(steps.at(-1)?.state, stateAt(iteration));
      break;
    }
    case 3: {
      const [last] = await store.listSteps({ ...of, limit: 10, offset: iteration });
      assert.equal(last?.iteration, iteration);
      break;
    }
    default: {
      const hits = await store.listMessages({ conversation_id: session_id, limit: 500, offset: 0 });
      assert.equal(hits.length, iteration + 1);
    }
  }
}

async function run(store: Store, random: Random): Promise<OwnedSession> {
  const session_id = newId();
  let owned = await mustCreate(store, aSession({ session_id, conversation_id: session_id }));
  for (let iteration = 0; iteration < STEPS; iteration++) {
    const action = anAction({ session_id, payload: { guidance: iteration } });
    await mustCommit(store, { actions: [action] });
    const delivery = deliver(owned, action);
    await mustCommit(store, delivery.batch);
    const actions = [consumed(delivery.action, iteration)];
    ({ owned } = await mustAdvance(store, delivery.owned, { state: stateAt(iteration), actions }));
    if (random.chance(0.3)) await assertSeen(store, session_id, iteration, random);
  }
  return owned;
}

export function concurrency(open: OpenStore): void {
  describeClaims("many at once", open, (claim) => {
    claim(`${SESSIONS} sessions commit side by side, and each reads its own writes`, async (store, t) => {
      const random = randomFor(t);
      const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => run(store, random)));
      return async (reader) => {
        const newest = await reader.listSessions({ limit: 500, offset: 0 });
        assert.deepEqual(
          new Map(newest.map((session) => [session.session_id, session])),
          new Map(sessions.map(({ session }) => [session.session_id, session])),
        );
        for (const { session } of sessions.slice(0, 20)) {
          const { session_id } = session;
          const steps = await reader.listSteps({ session_id, limit: 500, offset: 0 });
          assert.deepEqual(
            steps.map(({ iteration, guidance, state }) => ({ iteration, guidance, state })),
            Array.from({ length: STEPS }, (_, at) => ({ iteration: at, guidance: [at], state: stateAt(at) })),
          );
          const actions = await reader.listActions({ session_id, limit: 500, offset: 0 });
          assert.deepEqual(
            actions.map(({ receipt, consumed_iteration }) => ({ receipt, consumed_iteration })),
            Array.from({ length: STEPS }, (_, at) => ({ receipt: "consumed", consumed_iteration: STEPS - 1 - at })),
          );
        }
      };
    });

    claim("a list read while rows are written and moved has no hole and no repeat", async (store) => {
      const conversation_id = newId();
      let written = 0;
      const writing = (async () => {
        for (; written < 300; written++)
          await mustCommit(store, { messages: [aMessage({ conversation_id, text: `${written}` })] });
      })();
      for (let atLeast = 0; atLeast < 300; atLeast = written) {
        const messages = await store.listMessages({ conversation_id, limit: 500, offset: 0 });
        assert.ok(messages.length >= atLeast, `${messages.length} of ${atLeast}`);
        assert.deepEqual(
          messages.map(({ text }) => text),
          messages.map((_, at) => `${at}`),
        );
        const offset = Math.max(0, atLeast - 5);
        const [first] = await store.listMessages({ conversation_id, limit: 500, offset });
        if (atLeast > 0) assert.equal(first?.text, `${offset}`);
      }
      await writing;
      return async (reader) =>
        assert.equal((await reader.listMessages({ conversation_id, limit: 500, offset: 0 })).length, 300);
    });

    claim("messages of many senders are in one order for everyone", async (store) => {
      const conversation_id = newId();
      const sent = Array.from({ length: 300 }, () => aMessage({ conversation_id }));
      await Promise.all(sent.map((message) => store.commit({ messages: [message] })));
      const order = await store.listMessages({ conversation_id, limit: 500, offset: 0 });
      assert.deepEqual(new Set(order.map((row) => row.message_id)), new Set(sent.map((row) => row.message_id)));
      return async (reader) => {
        assert.deepEqual(await reader.listMessages({ conversation_id, limit: 500, offset: 0 }), order);
        for (const at of [0, 123, 298]) {
          const after = order[at]?.message_id ?? "";
          const rest = await reader.listMessages({ conversation_id, after, limit: 500, offset: 0 });
          assert.deepEqual(rest, order.slice(at + 1));
        }
      };
    });
  });
}
