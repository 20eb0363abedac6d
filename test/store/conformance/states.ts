import assert from "node:assert/strict";
import { describe } from "node:test";
import type { JsonObject, JsonValue } from "../../../src/domain/json.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import { advance, mustAdvance, mustCommit, mustCreate, WORKER } from "../fixtures.ts";
import { type Random, randomFor } from "../random.ts";
import { nextState, randomObject } from "../random-state.ts";
import { describeClaims, IN_ORDER, type OpenStore, testOnFreshStore } from "./opened-store.ts";

const STEPS = 400;

export function states(open: OpenStore): void {
  describe("the states of a long session", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);
    fresh(
      "read back to the letter at any step, on any page, with restarts in between",
      async ({ store, reopen }, t) => {
        const random = randomFor(t);
        let at = store;
        let owned = await mustCreate(store);
        const { session_id } = owned.session;
        const texts: string[] = [];
        let state: JsonObject = { background: "x".repeat(2_000), ...randomObject(random) };
        for (let step = 0; step < STEPS; step++) {
          if (step === 150 || step === 300) {
            at = await reopen();
            const [claimed] = await at.claimSessions({ worker: WORKER, limit: 1 });
            assert.equal(JSON.stringify(claimed?.session.context), texts.at(-1));
            owned = claimed as OwnedSession;
          }
          state = random.chance(0.01) ? randomObject(random) : nextState(random, state);
          if (random.chance(0.02)) state = { background: "y".repeat(2_000), ...state };
          texts.push(JSON.stringify(state));
          ({ owned } = await mustAdvance(at, owned, { state }));
        }
        await assertStates(at, session_id, texts, random);
        await assertStates(await reopen(), session_id, texts, random);
      },
    );
  });

  describeClaims("a state", open, (claim) => {
    claim("is stored as it was committed, also where its owner changes it in place afterwards", async (store) => {
      let owned = await mustCreate(store);
      const state: { list: string[]; nested: { n: number } } = { list: ["x".repeat(200)], nested: { n: 0 } };
      const texts: string[] = [];
      for (let n = 0; n < 5; n++) {
        state.list.push(`item ${n}`);
        state.nested.n = n;
        texts.push(JSON.stringify(state));
        ({ owned } = await mustAdvance(store, owned, { state }));
      }
      return async (reader) => assert.deepEqual(await textsOf(reader, owned.session.session_id), texts);
    });

    claim("of the last step is the session's context, whatever the session's row says", async (store) => {
      const zero = await mustAdvance(store, await mustCreate(store), {
        state: { n: 0 },
        session: { context: { n: 7 } },
      });
      const session = { ...zero.owned.session, context: { n: 8 } };
      await mustCommit(store, { sessions: [{ kind: "update", session, owner: zero.owned.owner }] });
      const { session_id } = session;
      return async (reader) => assert.deepEqual((await reader.getSession(session_id))?.context, { n: 0 });
    });

    claim("that a reader was given can be changed without harm to the store", async (store) => {
      const before: JsonObject = { list: ["x".repeat(200)] };
      const after: JsonObject = { list: ["x".repeat(200), "more"] };
      const zero = await mustAdvance(store, await mustCreate(store), { state: structuredClone(before) });
      const { session_id } = zero.step;
      const copies = [(await store.getSession(session_id))?.context, (await store.latestStep({ session_id }))?.state];
      for (const state of copies as { list: string[] }[]) state.list.push("scribble");
      assert.deepEqual((await store.getSession(session_id))?.context, before);
      const one = await mustAdvance(store, zero.owned, { state: after });
      return async (reader) => {
        assert.deepEqual(await textsOf(reader, session_id), [JSON.stringify(before), JSON.stringify(after)]);
        assert.deepEqual((await reader.getSession(session_id))?.context, one.step.state);
      };
    });

    claim("may be empty, and may be filled and emptied again", async (store) => {
      const text = "x".repeat(1_000);
      const sequence: JsonObject[] = [{}, { text }, {}, {}, { text, a: null }, { a: null }];
      let owned = await mustCreate(store);
      for (const state of sequence) ({ owned } = await mustAdvance(store, owned, { state }));
      const texts = sequence.map((state) => JSON.stringify(state));
      return async (reader) => assert.deepEqual(await textsOf(reader, owned.session.session_id), texts);
    });

    claim("of 1,000 levels is stored, and one too deep to write harms no other commit", async (store) => {
      const [deep, tooDeep, other] = [await mustCreate(store), await mustCreate(store), await mustCreate(store)];
      const stored = await mustAdvance(store, deep, { state: { value: nested(1_000) } });
      const [refused, neighbour] = await Promise.allSettled([
        store.commit(advance(tooDeep, { state: { value: nested(100_000) } }).batch),
        store.commit(advance(other).batch),
      ]);
      assert.equal(refused.status, "rejected");
      assert.deepEqual(neighbour, { status: "fulfilled", value: { kind: "committed" } });
      await mustCommit(store, advance(tooDeep).batch);
      return async (reader) => {
        assert.deepEqual(await textsOf(reader, deep.session.session_id), [JSON.stringify(stored.step.state)]);
        assert.deepEqual(await textsOf(reader, tooDeep.session.session_id), ['{"n":0}']);
        assert.deepEqual(await textsOf(reader, other.session.session_id), ['{"n":0}']);
      };
    });
  });
}

async function textsOf(store: Store, session_id: string, limit = 500, offset = 0): Promise<string[]> {
  const steps = await store.listSteps({ session_id, limit, offset });
  return steps.map((step) => JSON.stringify(step.state));
}

async function assertStates(store: Store, session_id: string, texts: string[], random: Random): Promise<void> {
  assert.deepEqual(await textsOf(store, session_id), texts);
  for (let page = 0; page < 20; page++) {
    const [offset, limit] = [random.below(STEPS), 1 + random.below(20)];
    const expected = texts.slice(offset, offset + limit);
    assert.deepEqual(await textsOf(store, session_id, limit, offset), expected, `offset ${offset}, limit ${limit}`);
  }
  const latest = await store.latestStep({ session_id });
  assert.equal(JSON.stringify(latest?.state), texts.at(-1));
  assert.equal(JSON.stringify((await store.getSession(session_id))?.context), texts.at(-1));
}

function nested(levels: number): JsonValue {
  let value: JsonValue = "bottom";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
}
