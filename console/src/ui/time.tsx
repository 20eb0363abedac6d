import { Signal, useSignal } from "../data/signal.ts";

const now = new Signal(Date.now());
setInterval(() => now.set(Date.now()), 1000);

const UNITS: [limit: number, divisor: number, unit: string][] = [
  [60, 1, "s"],
  [3600, 60, "m"],
  [86_400, 3600, "h"],
  [Number.POSITIVE_INFINITY, 86_400, "d"],
];

export function shortSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [, divisor, unit] = UNITS.find(([limit]) => seconds < limit) ?? UNITS[3] ?? [0, 1, "s"];
  return `${Math.floor(seconds / divisor)}${unit}`;
}

/** A duration in its two largest units: 11 s, 1 min 15 s, 3 h 5 min. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return twoUnits(seconds, 60, "min", "s");
  if (seconds < 86_400) return twoUnits(Math.floor(seconds / 60), 60, "h", "min");
  return twoUnits(Math.floor(seconds / 3600), 24, "d", "h");
}

function twoUnits(value: number, size: number, large: string, small: string): string {
  const rest = value % size;
  return `${Math.floor(value / size)} ${large}${rest === 0 ? "" : ` ${rest} ${small}`}`;
}

/** Labels of a time axis in the reader's locale, as precise as its ticks are close. */
export function tickFormat(tick_ms: number): Intl.DateTimeFormat {
  if (tick_ms >= 86_400_000) return new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
  const format: Intl.DateTimeFormatOptions = { hour: "numeric", minute: "2-digit" };
  if (tick_ms < 60_000) format.second = "2-digit";
  if (tick_ms < 1000) format.fractionalSecondDigits = 3;
  return new Intl.DateTimeFormat(undefined, format);
}

/** The current time in milliseconds, updated every second. */
export const useNow = (): number => useSignal(now);

const utc = (iso: string): string => `${iso.replace("T", " ").replace("Z", "")} UTC`;

/** How long ago, with local time and UTC on hover. */
export function Age({ at }: { at: string }) {
  const since = useSignal(now) - Date.parse(at);
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString()}\n${utc(at)}`}>
      {shortSpan(since)}
    </time>
  );
}

/** How long until a future time, with local time and UTC on hover. */
export function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useSignal(now);
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString()}\n${utc(at)}`}>
      {left <= 0 ? "now" : `in ${shortSpan(left)}`}
    </time>
  );
}

/** How long since, to the second. */
export function Elapsed({ at }: { at: string }) {
  const since = useNow() - Date.parse(at);
  return (
    <time dateTime={at} title={`since ${new Date(at).toLocaleString()}\n${utc(at)}`}>
      {span(since)}
    </time>
  );
}

/** A future time, and how long until then, to the second. */
export function Left({ at }: { at: string }) {
  const current = useNow();
  const left = Date.parse(at) - current;
  const isToday = new Date(at).toDateString() === new Date(current).toDateString();
  return (
    <span>
      until <Time at={at} withDate={!isToday} />{" "}
      <span className="text-muted">({left <= 0 ? "now" : `in ${span(left)}`})</span>
    </span>
  );
}

/** A time in the reader's zone, with UTC on hover. */
export function Time({ at, withDate = false }: { at: string; withDate?: boolean }) {
  const moment = new Date(at);
  return (
    <time dateTime={at} title={utc(at)}>
      {withDate ? moment.toLocaleString() : moment.toLocaleTimeString()}
    </time>
  );
}
