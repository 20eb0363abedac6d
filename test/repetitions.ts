/** Whether the long versions of tests are requested. */
export const IS_LONG = process.env["EVERSTEP_TEST_LONG"] === "1";

/**
 * How many times a test repeats: few times by default, enough to hit each case it distinguishes; many times with
 * EVERSTEP_TEST_LONG=1; or as many as the test's own variable says.
 */
export function repetitions(variable: string, { few, many }: { few: number; many: number }): number {
  const own = process.env[variable];
  if (own !== undefined) return Number(own);
  return IS_LONG ? many : few;
}
