import type { TestContext } from "node:test";

/** The same seed gives the same numbers, so that a failed round can be reproduced. */
export type SeededRandom = {
  /** From 0 up to, not including, `below`. */
  integer(below: number): number;
  pick<Value>(values: readonly [Value, ...Value[]]): Value;
};

export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (below: number): number => Math.floor(next() * below);
  return { integer, pick: (values) => values[integer(values.length)] ?? values[0] };
}

/** From the environment variable, or random. */
export function seedFrom(variable: string): number {
  return Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 31));
}

/** With a seed that the test prints, so that a failed run can be reproduced. */
export function reportedRandom(t: TestContext, variable: string): SeededRandom {
  const seed = seedFrom(variable);
  t.diagnostic(`${variable}=${seed}`);
  return seededRandom(seed);
}
