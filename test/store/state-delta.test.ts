import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { applyDelta, type Changes, diff } from "../../src/store/state-delta.ts";
import { randomFor } from "./random.ts";
import { nextState, randomObject } from "./random-state.ts";

const LEVELS = 5_000;

/** The delta passes through JSON text, as in the store. */
function roundTrip(before: JsonObject, after: JsonObject): { text: string; delta: string; growth: number } | null {
  const difference = diff(before, after);
  if (!difference) return null;
  const delta = JSON.stringify(difference.delta);
  const text = JSON.stringify(applyDelta(before, JSON.parse(delta) as Changes));
  return { text, delta, growth: difference.growth };
}

function assertRoundTrip(before: JsonObject, after: JsonObject): string {
  const [beforeText, afterText] = [JSON.stringify(before), JSON.stringify(after)];
  const trip = roundTrip(before, after);
  assert.ok(trip, `no difference for ${beforeText} -> ${afterText}`);
  assert.equal(trip.text, afterText);
  assert.equal(JSON.stringify(before), beforeText, "before was mutated");
  assert.equal(JSON.stringify(after), afterText, "after was mutated");
  return trip.delta;
}

describe("a difference", () => {
  test("turns any state into any other to the letter and leaves both alone", (t) => {
    const random = randomFor(t);
    let deltaCount = 0;
    for (let round = 0; round < 20_000; round++) {
      const before = randomObject(random);
      const after = random.chance(0.1) ? randomObject(random) : nextState(random, before);
      const [beforeText, afterText] = [JSON.stringify(before), JSON.stringify(after)];
      const trip = roundTrip(before, after);
      if (trip) {
        deltaCount++;
        assert.equal(trip.text, afterText, `${beforeText} by ${trip.delta}`);
      }
      assert.equal(JSON.stringify(before), beforeText, `before was mutated on the way to ${afterText}`);
      assert.equal(JSON.stringify(after), afterText, `after was mutated on the way from ${beforeText}`);
    }
    assert.ok(deltaCount > 10_000, `only ${deltaCount} of 20,000 states were told as a difference`);
  });

  test("holds over a long chain in which each state is rebuilt from the rebuilt one before", (t) => {
    const random = randomFor(t);
    let state = randomObject(random);
    let rebuilt = state;
    for (let step = 0; step < 2_000; step++) {
      const after = step % 100 === 0 ? randomObject(random) : nextState(random, state);
      const difference = diff(state, after);
      rebuilt = difference ? applyDelta(rebuilt, JSON.parse(JSON.stringify(difference.delta)) as Changes) : after;
      assert.equal(JSON.stringify(rebuilt), JSON.stringify(after), `at step ${step}`);
      state = after;
    }
  });

  for (const key of ["__proto__", "constructor", "toString", "", "0", "12", "4294967295", "\ud83d", "-", "=", "#"]) {
    test(`treats the key ${JSON.stringify(key)} as data`, () => {
      const holding = (value: JsonValue): JsonObject => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`);
      assertRoundTrip({}, holding({ polluted: true }));
      assertRoundTrip(holding({ polluted: true }), {});
      assertRoundTrip(holding("text"), holding("text and more"));
      assertRoundTrip(holding({ a: 1 }), holding({ a: 1, b: { c: 2 } }));
      assertRoundTrip({ list: [holding(1), 2] }, { list: [holding(2), 2] });
      assertRoundTrip(holding(holding(1)), holding(holding(holding(2))));
      assert.equal(({} as JsonObject)["polluted"], undefined);
    });
  }

  test("keeps halves of surrogate pairs apart and joins them again", () => {
    assertRoundTrip({ text: "😀" }, { text: "😁" });
    assertRoundTrip({ text: "a😀" }, { text: "a\ud83d" });
    assertRoundTrip({ text: "a\ud83d" }, { text: "a😀" });
    assertRoundTrip({ text: "\ude00b" }, { text: "😀b" });
    assertRoundTrip({ text: "👩‍👩‍👧" }, { text: "👩‍👩‍👦" });
  });

  test("distinguishes values that look like parts of its own notation", () => {
    const lookalikes: JsonValue[] = [["-"], ["=", 1], ["~", 0, 1, "x"], ["#", {}], { 0: "-" }, [], {}, "-", null];
    for (const before of lookalikes) {
      for (const after of lookalikes) {
        assertRoundTrip({ value: before }, { value: after });
        assertRoundTrip({ list: [before, 1] }, { list: [after, 1] });
        assertRoundTrip({ deeper: { value: before } }, { deeper: { value: after } });
      }
    }
  });

  test("of equal states is empty, also where they are not the same object", () => {
    const state: JsonObject = { list: [1, { a: ["b"] }], text: "x", nested: { deeper: {} } };
    assert.equal(assertRoundTrip(state, structuredClone(state)), "{}");
  });

  test("is as small as the change, wherever in a large state it is", () => {
    const line = "x".repeat(1_000);
    const lines = Array.from({ length: 100 }, (_, index) => `${index} ${line}`);
    const state: JsonObject = {
      text: line.repeat(100),
      list: lines,
      objects: lines.map((text) => ({ text, done: false })),
    };
    const smallChanges: [string, JsonObject][] = [
      ["a text grows", { ...state, text: `${state["text"] as string} more` }],
      ["a text changes within", { ...state, text: `${line.repeat(50)}Y${line.repeat(50)}` }],
      ["a list grows", { ...state, list: [...lines, "more"] }],
      ["a list loses its first", { ...state, list: lines.slice(1) }],
      ["an element of a list changes", { ...state, list: lines.with(50, `${lines[50]}!`) }],
      ["a key of an element changes", { ...state, objects: lines.map((text, at) => ({ text, done: at === 7 })) }],
      ["a key comes", { ...state, more: 1 }],
      ["a key goes", { text: state["text"] as string, list: lines }],
    ];
    for (const [what, after] of smallChanges) {
      const delta = assertRoundTrip(state, after);
      assert.ok(delta.length < 60, `${what}: ${delta.length} characters`);
    }
  });

  test("knows how much the state grew, so that sizes need not be measured again", (t) => {
    const random = randomFor(t);
    for (let round = 0; round < 5_000; round++) {
      const before = randomObject(random);
      const after = nextState(random, before);
      const trip = roundTrip(before, after);
      if (!trip) continue;
      const exact = JSON.stringify(after).length - JSON.stringify(before).length;
      // Commas at the edge of a list or an object and halves of surrogate pairs may be counted differently.
      const slack = 16 + trip.delta.length / 2;
      const message = `${trip.growth} for ${exact}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`;
      assert.ok(Math.abs(trip.growth - exact) <= slack, message);
    }
  });

  test("knows how much shrank where the text is long to write in JSON, or the rest changed its order", () => {
    const control = "\u0001".repeat(1_000);
    const [cut, reordered] = [
      diff({ text: `a${control}` }, { text: "a" }),
      diff({ o: { gone: control, a: 1, b: 2 } }, { o: { b: 2, a: 1 } }),
    ];
    assert.equal(cut?.growth, -6_000);
    assert.equal(reordered?.growth, -'"gone":"",'.length - 6_000);
  });

  // The main thread's stack is too small to write such a value as JSON at all; a worker thread's is not.
  test(`survives ${LEVELS} levels of nesting`, async () => {
    const worker = new Worker(new URL("deep-nesting-worker.ts", import.meta.url), { workerData: LEVELS });
    const checked = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    await worker.terminate();
    assert.equal(checked, 12);
  });
});
