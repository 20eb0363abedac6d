import type { TestContext } from "node:test";

/** Random numbers determined by the seed (mulberry32), so that a failure can be reproduced. */
export type Random = {
  /** From 0 up to, but not including, 1. */
  fraction(): number;
  /** A whole number from 0 up to, but not including, `below`. */
  below(below: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  shuffled<T>(list: readonly T[]): T[];
};

/** `EVERSTEP_TEST_SEED` repeats a run; the seed of every run is printed. */
export function randomFor(test: TestContext): Random {
  const seed = Number(process.env["EVERSTEP_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
  test.diagnostic(`EVERSTEP_TEST_SEED=${seed}`);
  return randomFrom(seed);
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
    shuffled: <T>(list: readonly T[]): T[] => {
      const copy = [...list];
      for (let last = copy.length - 1; last > 0; last--) {
        const other = below(last + 1);
        [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
      }
      return copy;
    },
  };
}
