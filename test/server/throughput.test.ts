import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Throughput } from "../../src/surfaces/http/throughput.ts";

const step = (status: "ok" | "error", latency_ms: number) => ({ status, latency_ms, tokens_used: 3 });

describe("throughput", () => {
  test("counts the steps, failures and tokens of each five seconds, and forgets after half an hour", (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 1) });
    const throughput = new Throughput();
    for (const latency of [10, 20]) throughput.stepCommitted(step("ok", latency));
    throughput.stepCommitted(step("error", 60));
    assert.equal(throughput.samples().at(-1)?.steps, 0, "what is under way is not told yet");
    t.mock.timers.tick(5000);
    const at = "2026-01-01T00:00:00.000Z";
    assert.deepEqual(throughput.samples().at(-1), { at, steps: 2, errors: 1, tokens: 9, latency_ms: 30 });
    t.mock.timers.tick(30 * 60_000);
    throughput.stepCommitted(step("ok", 1));
    const samples = throughput.samples();
    assert.equal(samples.length, 360);
    assert.ok(samples.every(({ steps }) => steps === 0));
  });
});
