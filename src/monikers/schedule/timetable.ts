import { Cron } from "croner";

/** Runs that are counted in one go; a machine that slept for longer says "at least". */
const MOST_COUNTED = 1000;
const DAY_MS = 86_400_000;

/** When the runs of a schedule are due: a cron expression in a time zone, without the days that are left out. */
export class Timetable {
  readonly #cron: Cron;
  readonly #skipped: ReadonlySet<string>;
  readonly #days: Intl.DateTimeFormat;
  readonly #moments: Intl.DateTimeFormat;

  /** `skipped` are days as `YYYY-MM-DD` in the time zone. An expression or a zone that cannot be read throws. */
  constructor(expression: string, timezone: string, skipped: readonly string[] = []) {
    this.#cron = new Cron(expression, { timezone });
    this.#skipped = new Set(skipped);
    this.#days = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
    this.#moments = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  }

  /** The first run after a moment; null where there is none any more. */
  after(moment: Date): Date | null {
    let next = this.#cron.nextRun(moment);
    // A text without a zone is a time of the expression's own zone.
    while (next !== null && this.#skipped.has(this.day(next))) next = this.#cron.nextRun(`${this.day(next)}T23:59:59`);
    return next;
  }

  /** The runs from a planned one up to now, the planned one first; none while that is still to come. */
  due(planned: Date, now: Date): Date[] {
    const runs: Date[] = [];
    let run: Date | null = planned;
    while (run !== null && run <= now && runs.length < MOST_COUNTED) {
      runs.push(run);
      run = this.after(run);
    }
    return runs;
  }

  /** The day of a moment as it is called in the time zone, or a few days later. */
  day(moment: Date, later = 0): string {
    const day = this.#days.format(moment);
    return new Date(Date.parse(`${day}T00:00:00Z`) + later * DAY_MS).toISOString().slice(0, 10);
  }

  /** A moment for people, in the time zone. */
  tell(moment: Date): string {
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
