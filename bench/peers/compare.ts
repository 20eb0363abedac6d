import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import type { Contender } from "./contenders.ts";
import type { Measured } from "./rounds.ts";

export type Spread = { median: number; least: number; most: number };

/** All NaN if there are no values. */
export function spread(values: readonly number[]): Spread {
  if (values.length === 0) return { median: Number.NaN, least: Number.NaN, most: Number.NaN };
  return { median: summarize(values).p50, least: Math.min(...values), most: Math.max(...values) };
}

/** The best median among the contenders of a role; `choose` is Math.max or Math.min. NaN if none of them ran. */
export function best<Round>(
  measured: readonly Measured<Round>[],
  role: Contender["role"],
  value: (round: Round) => number,
  choose: (...values: number[]) => number,
): number {
  const ran = measured.filter(({ contender, rounds }) => contender.role === role && rounds.length > 0);
  return ran.length === 0 ? Number.NaN : choose(...ran.map(({ rounds }) => spread(rounds.map(value)).median));
}

/** The figures of the contenders that ran, and a line for each that could not: a missing Everstep is a missed bar. */
export function allFigures<Round>(
  measured: readonly Measured<Round>[],
  figuresOf: (one: Measured<Round>) => Figure[],
): Figure[] {
  return measured.flatMap((one) => {
    if (one.rounds.length > 0) return figuresOf(one);
    const bar = one.contender.role === "everstep" ? atMost(0) : null;
    return [{ figure: `${one.contender.name}: could not run, see above`, measured: Number.NaN, unit: "", bar }];
  });
}
