import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { type Chain, readState, type StoredState, storeState } from "../../src/store/state-delta.ts";
import { randomFor } from "./random.ts";
import { nextState, randomObject } from "./random-state.ts";

/** The size of a row without the text of its state. */
const ROW = 64;

function storeAll(states: JsonObject[]): StoredState[] {
  let chain: Chain | null = null;
  return states.map((state, iteration) => {
    const next = storeState(chain, state, iteration);
    chain = next.chain;
    return next.stored;
  });
}

/** Rebuilds a state from the rows alone, starting at its base. */
function readChain(rows: StoredState[], iteration: number): Chain | null {
  let chain: Chain | null = null;
  for (const row of rows.slice(rows[iteration]?.base_iteration, iteration + 1)) chain = readState(chain, row);
  return chain;
}

const readOne = (rows: StoredState[], iteration: number): JsonObject | undefined => readChain(rows, iteration)?.state;
const textOf = (value: unknown): string => JSON.stringify(value);
const charactersOf = (rows: StoredState[]): number => rows.reduce((total, row) => total + row.state.length, 0);
const costOfReading = (rows: StoredState[], iteration: number): number =>
  charactersOf(rows.slice(rows[iteration]?.base_iteration, iteration + 1));

const LINE = "0123456789abcdef".repeat(64);
const GROWING: Record<string, (step: number) => JsonObject> = {
  "a text": (step) => ({ text: Array.from({ length: step }, (_, at) => `${at} ${LINE}`).join("\n") }),
  "a list": (step) => ({ messages: Array.from({ length: step }, (_, at) => ({ at, text: LINE })) }),
  "an object": (step) => ({ notes: Object.fromEntries(Array.from({ length: step }, (_, at) => [`note ${at}`, LINE])) }),
  "the state itself": (step) => Object.fromEntries(Array.from({ length: step }, (_, at) => [`note ${at}`, LINE])),
};

describe("a chain of stored states", () => {
  test("gives back every state to the letter, from its base or read in one go", (t) => {
    const random = randomFor(t);
    for (let round = 0; round < 20; round++) {
      const states = [randomObject(random)];
      while (states.length < 300) {
        const last = states.at(-1) as JsonObject;
        states.push(random.chance(0.02) ? randomObject(random) : nextState(random, last));
      }
      const texts = states.map(textOf);
      const rows = storeAll(states);
      let chain: Chain | null = null;
      for (const [iteration, row] of rows.entries()) {
        chain = readState(chain, row);
        assert.equal(textOf(chain.state), texts[iteration], `read in one go, iteration ${iteration}`);
        assert.equal(textOf(readOne(rows, iteration)), texts[iteration], `from its base, iteration ${iteration}`);
      }
      assert.deepEqual(states.map(textOf), texts, "a state was mutated");
      assert.ok(rows.some((row) => row.state_kind === "delta"));
    }
  });

  test("continues where a reader left off", (t) => {
    const random = randomFor(t);
    let state: JsonObject = { history: LINE };
    let chain: Chain | null = null;
    const rows: StoredState[] = [];
    for (let iteration = 0; iteration < 1_000; iteration++) {
      if (random.chance(0.2)) chain = readChain(rows, iteration - 1);
      state = nextState(random, state);
      const next = storeState(chain, state, iteration);
      chain = next.chain;
      rows.push(next.stored);
      assert.equal(textOf(readOne(rows, iteration)), textOf(state), `iteration ${iteration}`);
    }
    assert.ok(rows.some((row) => row.state_kind === "delta"));
  });

  test("begins with a whole state where the one before is not at hand", () => {
    const { stored } = storeState(null, { text: LINE }, 41);
    assert.deepEqual(stored, { state_kind: "whole", base_iteration: 41, state: textOf({ text: LINE }) });
    const delta: StoredState = { state_kind: "delta", base_iteration: 41, state: "{}" };
    assert.throws(() => readState(null, delta), /without its base/);
  });

  test("stores whatever nesting the stack can just write", () => {
    const nested = (levels: number, bottom: string): JsonObject => {
      let value: JsonValue = bottom;
      for (let level = 0; level < levels; level++) value = [value];
      return { value };
    };
    let [deepest, tooDeep] = [1, 1_000_000];
    while (tooDeep - deepest > 1) {
      const middle = Math.floor((deepest + tooDeep) / 2);
      try {
        textOf(nested(middle, "bottom line"));
        deepest = middle;
      } catch {
        tooDeep = middle;
      }
    }
    const states = ["bottom", "bottom line"].map((bottom) => nested(deepest - 100, bottom));
    assert.equal(textOf(readOne(storeAll(states), 1)), textOf(states[1]));
  });

  for (const [what, stateAfter] of Object.entries(GROWING)) {
    test(`CHAIN-1: where ${what} grows, the total follows what was added`, () => {
      const rows = storeAll(Array.from({ length: 500 }, (_, step) => stateAfter(step + 1)));
      const payload = textOf(stateAfter(500)).length;
      assert.ok(charactersOf(rows) < 3 * payload, `${charactersOf(rows)} characters stored for ${payload}`);
      const deltas = rows.filter((row) => row.state_kind === "delta").map((row) => row.state.length);
      assert.ok(deltas.length > 480, `only ${deltas.length} differences`);
      assert.ok(Math.max(...deltas) < 1.2 * LINE.length, `a difference of ${Math.max(...deltas)} characters`);
    });
  }

  test("CHAIN-1: a large state with one small change per step stays cheap", () => {
    const states = Array.from({ length: 2_000 }, (_, n) => ({ n, background: LINE.repeat(100) }));
    const rows = storeAll(states);
    const changed = rows.length * (ROW + 20);
    assert.ok(charactersOf(rows) < 3 * changed + textOf(states[0]).length, `${charactersOf(rows)} characters stored`);
  });

  for (const restarts of [0, 0.05]) {
    test(`CHAIN-1: any state is rebuilt from at most about twice its size, also after it shrank (restarts: ${restarts})`, (t) => {
      const random = randomFor(t);
      const rows: StoredState[] = [];
      let [chain, lines]: [Chain | null, string[]] = [null, []];
      for (let step = 0; step < 2_000; step++) {
        if (random.chance(0.01)) lines = lines.slice(random.below(lines.length));
        else lines = [...lines, "\u0001\n".repeat(random.below(100))];
        const state = { lines, last: lines.at(-1) ?? null, n: step };
        if (random.chance(restarts)) chain = readChain(rows, step - 1);
        const next = storeState(chain, state, step);
        chain = next.chain;
        rows.push(next.stored);
        const [cost, size] = [costOfReading(rows, step), textOf(state).length];
        assert.ok(cost <= 2.1 * size + ROW, `iteration ${step}: ${cost} characters read for ${size}`);
      }
    });
  }

  test("CHAIN-1: what is written in JSON with escapes is counted as it is written", () => {
    const background = LINE.repeat(20);
    const states = Array.from({ length: 1_000 }, (_, n) => ({
      background,
      draft: n % 2 ? "" : "\u0001".repeat(1_000),
    }));
    const rows = storeAll(states);
    for (const [iteration, state] of states.entries()) {
      const [cost, size] = [costOfReading(rows, iteration), textOf(state).length];
      assert.ok(cost <= 2.1 * size + ROW, `iteration ${iteration}: ${cost} characters read for ${size}`);
    }
  });
});
