import { setFlagsFromString } from "node:v8";

/**
 * How much the old generation may grow, as a percentage of live memory, before V8 collects it. V8's default is up to 300. With
 * 50 a busy process takes a tenth more processor time.
 */
const GROWTH_PERCENT = 100;

/** For this process and its threads. V8 reads the flag after each collection, so it can be set at run time. */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}

/**
 * For a program that does little and should take little memory: the young generation does not grow, V8 prefers size to speed, and WebAssembly is
 * not compiled a second time with optimizations, whose working memory stays with the process.
 */
export function keepHeapSmall(): void {
  limitHeapGrowth();
  for (const flag of [
    "--semi-space-growth-factor=1",
    "--optimize-for-size",
    "--no-wasm-tier-up",
    "--no-wasm-dynamic-tiering",
  ])
    setFlagsFromString(flag);
}
