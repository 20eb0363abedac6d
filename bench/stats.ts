export type Summary = { p50: number; p99: number; max: number };

/** Nearest rank. All NaN if there are no samples. */
export function summarize(samples: Float64Array | readonly number[]): Summary {
  const sorted = Float64Array.from(samples).sort();
  const rank = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { p50: rank(0.5), p99: rank(0.99), max: rank(1) };
}

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/** Text that hardly compresses, so that sizes on disk are realistic. */
export function randomText(random: () => number, length: number): string {
  let text = "";
  while (text.length < length) text += LETTERS[Math.floor(random() * LETTERS.length)];
  return text;
}
