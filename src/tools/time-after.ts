/** The latest time that can be represented. */
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** The time in `seconds` from now. */
export const timeAfter = (seconds: number): string =>
  new Date(Math.min(LATEST_MS, Date.now() + seconds * 1000)).toISOString();
