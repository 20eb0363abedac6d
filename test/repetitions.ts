/** Whether the long versions of tests are asked for. */
export const IS_LONG = process.env["EVERSTEP_TEST_LONG"] === "1";

/**
 * How often a test repeats itself: few times by default, enough to meet each case that it tells apart; many times where
 * EVERSTEP_TEST_LONG=1 asks for that; and as often as the variable of the test's own says.
 */
export function repetitions(variable: string, { few, many }: { few: number; many: number }): number {
  const own = process.env[variable];
  if (own !== undefined) return Number(own);
  return IS_LONG ? many : few;
}
