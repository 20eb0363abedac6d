import { Cron } from "croner";

/** The most runs counted at once; after a longer sleep of the machine the text says "at least". */
const MOST_COUNTED = 1000;
const DAY_MS = 86_400_000;

/** When runs are due: a cron expression in a time zone, without the skipped days. */
export class Timetable {
  readonly #cron: Cron;
  readonly #skipped: ReadonlySet<string>;
  readonly #days: Intl.DateTimeFormat;
  readonly #moments: Intl.DateTimeFormat;

  /** `skipped` are days as `YYYY-MM-DD` in the time zone. Throws if the expression or the zone is invalid. */
  constructor(expression: string, timezone: string, skipped: readonly string[] = []) {
    this.#cron = new Cron(expression, { timezone });
    this.#skipped = new Set(skipped);
    this.#days = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
    this.#moments = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  }

  /** The first run after a moment; null if there is none. */
  after(moment: Date): Date | null {
    let next = this.#cron.nextRun(moment);
    // A time without a zone is in the expression's zone.
    while (next !== null && this.#skipped.has(this.day(next))) next = this.#cron.nextRun(`${this.day(next)}T23:59:59`);
    return next;
  }

  /** The runs from a planned one up to now, the planned one first; none if that is in the future. */
  due(planned: Date, now: Date): Date[] {
    const runs: Date[] = [];
    let run: Date | null = planned;
    while (run !== null && run <= now && runs.length < MOST_COUNTED) {
      runs.push(run);
      run = this.after(run);
    }
    return runs;
  }

  /** The date of a moment in the time zone, or some days later. */
  day(moment: Date, later = 0): string {
    const day = this.#days.format(moment);
    return new Date(Date.parse(`${day}T00:00:00Z`) + later * DAY_MS).toISOString().slice(0, 10);
  }

  /** A moment formatted for people, in the time zone. */
  format(moment: Date): string {
    return this.#moments.format(moment).replace(/:00$/, "");
  }
}

export function isTimezone(name: string): boolean {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
