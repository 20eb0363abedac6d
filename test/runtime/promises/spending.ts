import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isObject } from "../../../src/domain/json.ts";
import type { StepCall } from "../../../src/domain/step.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const MODEL_CALL: StepCall = {
  kind: "model",
  name: "openai/test",
  input: [{ role: "user", text: "Say it." }],
  output: "Said.",
  tokens: 150,
  input_tokens: 120,
  output_tokens: 30,
  cached_tokens: 100,
  cost_usd: 0.1,
  latency_ms: 12.5,
};
const TOOL_CALL: StepCall = {
  kind: "tool",
  name: "files/read",
  input: { path: "a.md" },
  output: null,
  latency_ms: 3,
  error: "no",
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Token usage of steps, and their calls. */
export function spending(makeHome: MakeHome): void {
  describe("what a step reports about its calls", () => {
    const world = sharedWorld(makeHome);

    test("is in its row, those of failed attempts too, and adds up in the session's", TIMEOUT, async () => {
      let attempt = 0;
      const moniker = world().moniker("finite", ({ step, state }, { emit }) => {
        emit({ kind: "usage", tokens: 150, cost_usd: 0.1 });
        emit({ kind: "call", call: MODEL_CALL });
        emit({ kind: "call", call: TOOL_CALL });
        if (++attempt === 1) throw new Error("once");
        if (attempt === 3) throw new StepError("no", "never", { retryable: false });
        return { step, next_step: step, state, done: false };
      });
      const retry = { max_attempts: 2, backoff_ms: 1 };
      const session_id = await world().create(moniker, { options: { retry } });
      const failed = await world().untilStatus(session_id, "error");
      const [first, second] = await world().steps(session_id);
      assert.deepEqual(first?.calls, [MODEL_CALL, TOOL_CALL, MODEL_CALL, TOOL_CALL]);
      assert.deepEqual([first?.status, first?.attempts, first?.tokens_used, first?.cost_usd], ["ok", 2, 300, 0.2]);
      assert.deepEqual(second?.calls, [MODEL_CALL, TOOL_CALL]);
      assert.deepEqual([second?.status, second?.tokens_used, second?.cost_usd], ["error", 150, 0.1]);
      assert.deepEqual([failed.tokens_used, failed.cost_usd], [450, 0.3]);
    });

    test("is cut where it is large, and says so", TIMEOUT, async () => {
      const large = "ä".repeat(100_000);
      const moniker = world().moniker("finite", ({ step, state }, { emit }) => {
        for (let n = 0; n < 300; n++)
          emit({ kind: "call", call: { ...TOOL_CALL, input: { large }, output: { n, large } } });
        return { step, next_step: step, state, done: true };
      });
      const session_id = await world().create(moniker);
      await world().untilStatus(session_id, "done");
      const calls = (await world().steps(session_id))[0]?.calls ?? [];
      assert.equal(calls.length, 200);
      assert.ok(JSON.stringify(calls).length < 1024 * 1024);
      assert.match(textOf(calls.at(-1)?.output), /^\{"n":299,"large":"ä+… \(truncated: 65536 of 200\d+ bytes\)$/);
      assert.match(textOf(calls[0]?.input), /omitted/);
    });

    test("is only that there was a call if contents are not kept", TIMEOUT, async () => {
      await world().restart({ keep_calls: false });
      const moniker = world().moniker("finite", ({ step, state }, { emit }) => {
        emit({ kind: "call", call: MODEL_CALL });
        return { step, next_step: step, state, done: true };
      });
      const session_id = await world().create(moniker);
      await world().untilStatus(session_id, "done");
      const [step] = await world().steps(session_id);
      assert.deepEqual(step?.calls, [{ ...MODEL_CALL, input: null, output: null }]);
    });

    test(
      "does not change with what the moniker does to it later, and tolerates what is not JSON",
      TIMEOUT,
      async () => {
        await world().restart();
        const moniker = world().moniker("finite", ({ step, state }, { emit }) => {
          const input = { path: "a.md" };
          emit({ kind: "call", call: { ...TOOL_CALL, input } });
          input.path = "b.md";
          emit({ kind: "call", call: { kind: "tool", name: "x", latency_ms: Number.NaN } as unknown as StepCall });
          return { step, next_step: step, state, done: true };
        });
        const session_id = await world().create(moniker);
        await world().untilStatus(session_id, "done");
        const calls = (await world().steps(session_id))[0]?.calls ?? [];
        assert.deepEqual(isObject(calls[0]?.input) && calls[0].input, { path: "a.md" });
        assert.deepEqual(calls[1], { kind: "tool", name: "x", input: null, output: null, latency_ms: 0 });
      },
    );
  });
}
