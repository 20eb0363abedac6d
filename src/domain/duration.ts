import { EverstepError } from "./errors.ts";

const UNITS = { h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
/** Hours, days or weeks. */
export const DURATION = /^(\d{1,6})([hdw])$/;

/** In milliseconds. `name` is what was given it, for the error. */
export function durationOf(text: string, name: string): number {
  const [, count, unit] = DURATION.exec(text) ?? [];
  if (count !== undefined) return Number(count) * UNITS[unit as keyof typeof UNITS];
  throw new EverstepError(
    "config_invalid",
    `${name} ${text} is not a duration`,
    "use hours, days or weeks: 12h, 30d, 8w",
  );
}
