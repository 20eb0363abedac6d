import assert from "node:assert/strict";
import { parentPort, workerData } from "node:worker_threads";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { applyDelta, type Chain, type Changes, diff, readState, storeState } from "../../src/store/state-delta.ts";

/** Checks deltas and chains of deeply nested states, and reports how many pairs it checked. */
const levels = workerData as number;
const nestings: ((inner: JsonValue, level: number) => JsonValue)[] = [
  (inner) => [inner],
  (inner) => ({ a: inner }),
  (inner, level) => (level % 2 === 0 ? [inner, level] : { level, inner }),
];

let checked = 0;
for (const nest of nestings) {
  const nested = (bottom: JsonValue): JsonValue => {
    let value = bottom;
    for (let level = 0; level < levels; level++) value = nest(value, level);
    return value;
  };
  const before: JsonObject = { deep: nested("bottom"), beside: 1 };
  assertStored(before, { deep: nested("bottom line"), beside: 1 });
  assertStored(before, { deep: nested("bottom"), beside: 2 });
  assertStored(before, { beside: 1 });
  assertStored({ beside: 1 }, { beside: 1, deep: nested(null) });
}
parentPort?.postMessage(checked, []);

function assertStored(before: JsonObject, after: JsonObject): void {
  const text = JSON.stringify(after);
  const difference = diff(before, after);
  assert.ok(difference);
  assert.equal(JSON.stringify(applyDelta(before, JSON.parse(JSON.stringify(difference.delta)) as Changes)), text);

  const first = storeState(null, before, 0);
  const second = storeState(first.chain, after, 1);
  const chain: Chain = readState(readState(null, first.stored), second.stored);
  assert.equal(JSON.stringify(chain.state), text);
  checked++;
}
