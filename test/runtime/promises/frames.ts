import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { FrameOut } from "../../../src/domain/step-frame.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

class Account {
  balance = 1;
}

const GOOD = { step: "0", next_step: "1", state: {}, done: true };
const withState = (state: unknown): unknown => ({ ...GOOD, state });

function nested(depth: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 0; level < depth; level += 1) value = { value };
  return value;
}

function cycle(): object {
  const self: { self?: object; list?: object[] } = {};
  self.self = self;
  self.list = [self];
  return self;
}

const BAD: [string, unknown][] = [
  ["nothing", undefined],
  ["null", null],
  ["a number", 42],
  ["text", "done"],
  ["a list", [GOOD]],
  ["an empty object", {}],
  ["no next_step", { step: "0", state: {}, done: true }],
  ["no state", { step: "0", next_step: "1", done: true }],
  ["no done", { step: "0", next_step: "1", state: {} }],
  ["a done that is text", { ...GOOD, done: "yes" }],
  ["a next_step that is a number", { ...GOOD, next_step: 1 }],
  ["a text that is a number", { ...GOOD, text: 7 }],
  ["notes that are a list", { ...GOOD, notes: ["x"] }],
  ["a state that is null", withState(null)],
  ["a state that is a list", withState([])],
  ["a state that is text", withState("x")],
  ["NaN in the state", withState({ deep: [{ n: Number.NaN }] })],
  ["Infinity in the data", { ...GOOD, data: [Number.POSITIVE_INFINITY] }],
  ["a bigint in the state", withState({ n: 1n })],
  ["a function in the state", withState({ run: () => 1 })],
  ["a symbol in the data", { ...GOOD, data: Symbol("x") }],
  ["undefined in a list", withState({ list: [undefined] })],
  ["a cycle in the state", withState(cycle())],
  ["a cycle in the data", { ...GOOD, data: cycle() }],
  ["a state nested 5,000 deep", withState(nested(5000))],
  ["data nested 100,000 deep", { ...GOOD, data: nested(100_000) }],
  ["a class instance in the state", withState({ account: new Account() })],
  ["a class instance as the state", withState(new Account())],
  ["a date in the state", withState({ at: new Date() })],
  ["a map in the data", { ...GOOD, data: new Map([["a", 1]]) }],
  ["a promise in the state", withState({ later: Promise.resolve(1) })],
  ["40 MB of state", withState({ filler: "x".repeat(40_000_000) })],
  ["40 MB of text", { ...GOOD, text: "x".repeat(40_000_000) }],
];

export function frames(makeHome: MakeHome): void {
  describe("a moniker that returns", () => {
    const world = sharedWorld(makeHome);

    for (const [what, returned] of BAD) {
      test(`${what} puts its session in error, at once and with the reason`, TIMEOUT, async () => {
        let calls = 0;
        const session_id = await created(world(), () => {
          calls += 1;
          return returned as FrameOut;
        });
        const session = await world().untilStatus(session_id, "error", "done");
        assert.equal(session.status, "error");
        assert.match(session.last_error ?? "", /bad_frame/);
        assert.equal(calls, 1, "what it returns is no accident, so it is not asked again");
        assert.equal(session.iteration, -1);
        const [row] = await world().steps(session_id);
        assert.deepEqual([row?.status, row?.iteration, row?.error], ["error", 0, session.last_error]);
      });
    }

    test("fields that are undefined returns a frame without them", TIMEOUT, async () => {
      const frame = { ...GOOD, text: undefined, data: undefined, notes: undefined, state: { a: 1, b: undefined } };
      const session_id = await created(world(), () => frame as unknown as FrameOut);
      const session = await world().untilStatus(session_id, "done", "error");
      assert.equal(session.status, "done", session.last_error ?? "");
      assert.deepEqual(session.context, { a: 1 });
    });

    test("2 MB of state, text and data is given back exactly", TIMEOUT, async () => {
      const filler = "né🔑".repeat(400_000);
      const frame = { ...GOOD, state: { filler }, text: filler, data: [filler] };
      const session_id = await created(world(), () => frame);
      const session = await world().untilStatus(session_id, "done", "error");
      assert.equal(session.status, "done", session.last_error ?? "");
      const [step] = await world().steps(session_id);
      assert.ok(step?.text === filler && step.state["filler"] === filler && session.context["filler"] === filler);
      assert.deepEqual(step.data, [filler]);
    });

    test("keys and values that look like more than data gives them back as data", TIMEOUT, async () => {
      const state = JSON.parse('{"__proto__": {"a": 1}, "constructor": 1, "": {"__proto__": []}}') as JsonObject;
      const session_id = await created(world(), () => ({ ...GOOD, state, text: "", data: { "'; --": null } }));
      await world().untilStatus(session_id, "done");
      const [step] = await world().steps(session_id);
      assert.equal(JSON.stringify(step?.state), JSON.stringify(state));
      assert.deepEqual([step?.text, step?.data], ["", { "'; --": null }]);
    });

    test("the state it was given, changed in place, leaves every stored state right", TIMEOUT, async () => {
      const seen: JsonObject[] = [];
      const session_id = await created(world(), ({ step, state }, { ids }) => {
        for (const older of seen) (older["list"] as number[]).push(-1);
        seen.push(state);
        const list = (state["list"] ??= []) as number[];
        list.push(ids.iteration);
        state["last"] = ids.iteration;
        return { step, next_step: String(ids.iteration + 1), state, done: ids.iteration === 20 };
      });
      await world().untilStatus(session_id, "done");
      for (const [index, { state }] of (await world().steps(session_id)).entries())
        assert.deepEqual(state, { list: Array.from({ length: index + 1 }, (_, n) => n), last: index });
    });

    test("a state and then fails, having changed it in place, is given the old state again", TIMEOUT, async () => {
      let failed = false;
      const session_id = await created(world(), ({ step, state }, { ids }) => {
        const list = [...((state["list"] ?? []) as number[]), ids.iteration];
        state["list"] = ["spoiled"];
        if (ids.iteration === 1 && !failed) {
          failed = true;
          throw new Error("once");
        }
        return { step, next_step: "x", state: { list }, done: ids.iteration === 2 };
      });
      assert.deepEqual((await world().untilStatus(session_id, "done", "error")).context, { list: [0, 1, 2] });
    });

    test("having changed its parameters in place finds them as they were in the next step", TIMEOUT, async () => {
      const seenParams: unknown[] = [];
      const session_id = await created(world(), ({ step, state }, { ids, params }) => {
        const own = params as { list: string[] };
        seenParams.push(structuredClone(own));
        own.list.push("spoiled");
        return { step, next_step: "x", state, done: ids.iteration === 1 };
      });
      const session = await world().untilStatus(session_id, "done");
      assert.deepEqual(seenParams, [{ list: ["given"] }, { list: ["given"] }]);
      assert.deepEqual(session.params, { list: ["given"] });
    });
  });
}

type Step = Parameters<World["moniker"]>[1];

async function created(world: World, step: Step): Promise<string> {
  const options = { retry: { max_attempts: 3, backoff_ms: 1 } };
  return world.create(world.moniker("finite", step), { params: { list: ["given"] }, options });
}
