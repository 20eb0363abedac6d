import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../../src/domain/json.ts";
import type { OwnedSession } from "../../../src/store/store.ts";
import { advance, mustAdvance, mustCommit, mustCreate, WORKER } from "../fixtures.ts";
import { randomFor } from "../random.ts";
import { nextState, randomObject } from "../random-state.ts";
import { type OpenStore, withStore } from "./opened-store.ts";

const nested = (levels: number): JsonValue => {
  let value: JsonValue = "bottom";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
};

export function states(open: OpenStore): void {
  describe("a state", () => {
    test(
      "reads back to the letter at any of hundreds of steps, on any page, after restarts in between",
      withStore(open, async ({ store, reopen }, t) => {
        const random = randomFor(t);
        let reader = store;
        let owned = await mustCreate(store);
        const texts: string[] = [];
        let state: JsonObject = { background: "x".repeat(2_000), ...randomObject(random) };
        for (let step = 0; step < 400; step++) {
          if (step === 150 || step === 300) {
            reader = await reopen();
            const [claimed] = await reader.claimSessions({ worker: WORKER, limit: 1 });
            assert.equal(JSON.stringify(claimed?.session.context), texts.at(-1));
            owned = claimed as OwnedSession;
          }
          state = random.chance(0.01) ? randomObject(random) : nextState(random, state);
          if (random.chance(0.01)) state = { background: "y".repeat(2_000), ...state };
          texts.push(JSON.stringify(state));
          ({ owned } = await mustAdvance(reader, owned, { state }));
        }
        const { session_id } = owned.session;
        for (const at of [reader, await reopen()]) {
          const whole = await at.listSteps({ session_id, limit: 500, offset: 0 });
          assert.deepEqual(
            whole.map((step) => JSON.stringify(step.state)),
            texts,
          );
          for (let page = 0; page < 20; page++) {
            const [offset, limit] = [random.below(400), 1 + random.below(20)];
            const steps = await at.listSteps({ session_id, limit, offset });
            assert.deepEqual(
              steps.map((step) => JSON.stringify(step.state)),
              texts.slice(offset, offset + limit),
              `offset ${offset}, limit ${limit}`,
            );
          }
          const latest = await at.latestStep({ session_id });
          assert.equal(JSON.stringify(latest?.state), texts.at(-1));
          assert.equal(JSON.stringify((await at.getSession(session_id))?.context), texts.at(-1));
        }
      }),
    );

    test(
      "is stored as it was when it was committed, also where its owner changes it in place afterwards",
      withStore(open, async ({ store, reopen }) => {
        let owned = await mustCreate(store);
        const state: { list: string[]; nested: { n: number } } = { list: ["x".repeat(500)], nested: { n: 0 } };
        const texts: string[] = [];
        for (let n = 0; n < 5; n++) {
          state.list.push(`item ${n}`);
          state.nested.n = n;
          texts.push(JSON.stringify(state));
          ({ owned } = await mustAdvance(store, owned, { state }));
        }
        for (const reader of [store, await reopen()]) {
          const steps = await reader.listSteps({ session_id: owned.session.session_id, limit: 10, offset: 0 });
          assert.deepEqual(
            steps.map((step) => JSON.stringify(step.state)),
            texts,
          );
        }
      }),
    );

    test(
      "that a reader was given can be changed without harm to the store",
      withStore(open, async ({ store }) => {
        let { owned } = await mustAdvance(store, await mustCreate(store), { state: { list: ["x".repeat(500)] } });
        const { session_id } = owned.session;
        const context = async (): Promise<JsonObject> => (await store.getSession(session_id))?.context as JsonObject;
        ((await context())["list"] as JsonValue[]).push("scribble");
        (((await store.latestStep({ session_id }))?.state ?? {})["list"] as JsonValue[]).push("scribble");
        assert.deepEqual(await context(), { list: ["x".repeat(500)] });
        ({ owned } = await mustAdvance(store, owned, { state: { list: ["x".repeat(500), "true"] } }));
        const steps = await store.listSteps({ session_id, limit: 10, offset: 0 });
        assert.deepEqual(
          steps.map((step) => step.state),
          [{ list: ["x".repeat(500)] }, { list: ["x".repeat(500), "true"] }],
        );
      }),
    );

    test(
      "may be empty, may have been filled and emptied again",
      withStore(open, async ({ store, reopen }) => {
        let owned = await mustCreate(store);
        const wanted: JsonObject[] = [{}, { text: "x".repeat(1_000) }, {}, {}, { text: "x".repeat(1_000), a: null }, { a: null }];
        for (const state of wanted) ({ owned } = await mustAdvance(store, owned, { state }));
        for (const reader of [store, await reopen()]) {
          const steps = await reader.listSteps({ session_id: owned.session.session_id, limit: 10, offset: 0 });
          assert.deepEqual(
            steps.map(({ state }) => state),
            wanted,
          );
        }
      }),
    );

    test(
      "of 1,000 levels is stored, and one too deep to write harms no other commit",
      withStore(open, async ({ store, reopen }) => {
        const [deep, tooDeep, other] = [await mustCreate(store), await mustCreate(store), await mustCreate(store)];
        const stored = await mustAdvance(store, deep, { state: { value: nested(1_000) } });
        const [refused, neighbour] = await Promise.allSettled([
          store.commit(advance(tooDeep, { state: { value: nested(100_000) } }).batch),
          store.commit(advance(other).batch),
        ]);
        assert.equal(refused.status, "rejected");
        assert.deepEqual(neighbour, { status: "fulfilled", value: { kind: "committed" } });
        await mustCommit(store, advance(tooDeep).batch);
        for (const reader of [store, await reopen()]) {
          const latest = await reader.latestStep({ session_id: deep.session.session_id });
          assert.equal(JSON.stringify(latest?.state), JSON.stringify(stored.step.state));
          assert.equal((await reader.latestStep({ session_id: tooDeep.session.session_id }))?.iteration, 0);
        }
      }),
    );
  });
}
