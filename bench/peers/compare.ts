import { summarize } from "../stats.ts";
import type { Contender } from "./contenders.ts";
import type { Measured } from "./rounds.ts";

export type Spread = { median: number; least: number; most: number };

/** Without values there is nothing to say, so all are NaN. */
export function spread(values: readonly number[]): Spread {
  if (values.length === 0) return { median: Number.NaN, least: Number.NaN, most: Number.NaN };
  return { median: summarize(values).p50, least: Math.min(...values), most: Math.max(...values) };
}

/** The best median among those of a role, `choose` being Math.max or Math.min. NaN where none of them ran. */
export function best<Round>(
  measured: readonly Measured<Round>[],
  role: Contender["role"],
  value: (round: Round) => number,
  choose: (...values: number[]) => number,
): number {
  const ran = measured.filter(({ contender, rounds }) => contender.role === role && rounds.length > 0);
  return ran.length === 0 ? Number.NaN : choose(...ran.map(({ rounds }) => spread(rounds.map(value)).median));
}
