import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { JsonObject, JsonValue } from "../src/domain/json.ts";
import { checkFrame } from "../src/sessions/check-frame.ts";

const stateOf = (state: unknown, before?: JsonObject): JsonObject =>
  checkFrame({ step: "1", next_step: "2", state, done: false }, before).state;

suite("the state that a moniker returns", () => {
  test("cannot be changed by it afterwards", () => {
    const state = { list: [{ word: "said" }] };
    const kept = stateOf(state);
    (state.list[0] as { word: string }).word = "changed";
    state.list.push({ word: "more" });
    assert.deepEqual(kept, { list: [{ word: "said" }] });
  });

  test("shares what is as it was before, and nothing else", () => {
    const before: JsonObject = { old: [{ a: 1 }, { b: [2] }], same: { deep: ["x"] }, empty: {}, none: [] };
    const returned = JSON.parse(JSON.stringify(before)) as { old: JsonValue[] } & JsonObject;
    assert.equal(stateOf(returned, before), before);
    returned.old.push("new");
    const after: Record<string, JsonValue> = stateOf(returned, before);
    assert.deepEqual(after, returned);
    assert.notEqual(after["old"], before["old"]);
    for (const name of ["same", "empty", "none"]) assert.equal(after[name], before[name], name);
    assert.equal(after["old"][1], (before["old"] as JsonValue[])[1]);
    assert.equal((before["old"] as JsonValue[]).length, 2);
  });

  test("is exact: another order of keys is another state", () => {
    const before: JsonObject = { inner: { a: 1, b: 2 } };
    const after = stateOf({ inner: { b: 2, a: 1 } }, before);
    assert.equal(JSON.stringify(after), '{"inner":{"b":2,"a":1}}');
    assert.equal(JSON.stringify(stateOf({ inner: { a: 1 } }, before)), '{"inner":{"a":1}}');
    assert.equal(JSON.stringify(stateOf({ inner: [1, 2] }, before)), '{"inner":[1,2]}');
  });

  test("may have fields named like an object's built-in properties", () => {
    const state = JSON.parse('{"__proto__":{},"constructor":{},"toString":{"a":1}}') as JsonObject;
    const kept = stateOf(state, {});
    assert.equal(JSON.stringify(kept), JSON.stringify(state));
    assert.notEqual(Object.getOwnPropertyDescriptor(kept, "__proto__")?.value, Object.prototype);
    assert.equal(stateOf(JSON.parse(JSON.stringify(state)), kept), kept);
  });

  test("is refused with the place of what is no JSON", () => {
    const refused = (state: unknown, words: RegExp): void =>
      assert.throws(() => stateOf(state), { code: "bad_frame", message: words });
    refused({ a: [{ b: 1n }] }, /state\.a\[0\]\.b: a bigint is not JSON/);
    refused({ a: { b: Number.NaN } }, /state\.a\.b: NaN is not JSON/);
    refused({ a: [1, new Date(0)] }, /state\.a\[1\]: only plain objects are JSON/);
    let deep: JsonValue = 1;
    for (let level = 0; level < 600; level++) deep = [deep];
    refused({ deep }, /nested more than 500 deep/);
    const large = "x".repeat(20 * 1024 * 1024);
    assert.throws(() => checkFrame({ step: "1", next_step: "2", state: { large }, data: { large }, done: false }), {
      code: "bad_frame",
      message: /larger than/,
    });
  });
});
