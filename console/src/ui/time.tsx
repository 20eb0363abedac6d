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

const utc = (iso: string): string => `${iso.replace("T", " ").replace("Z", "")} UTC`;

/** How long ago, with the reader's own time and UTC on hover. */
export function Age({ at }: { at: string }) {
  const since = useSignal(now) - Date.parse(at);
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString()}\n${utc(at)}`}>
      {shortSpan(since)}
    </time>
  );
}

/** How long until a moment to come, with the reader's own time and UTC on hover. */
export function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useSignal(now);
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString()}\n${utc(at)}`}>
      {left <= 0 ? "now" : `in ${shortSpan(left)}`}
    </time>
  );
}

/** A moment in the reader's zone, UTC on hover. */
export function Time({ at, withDate = false }: { at: string; withDate?: boolean }) {
  const moment = new Date(at);
  return (
    <time dateTime={at} title={utc(at)}>
      {withDate ? moment.toLocaleString() : moment.toLocaleTimeString()}
    </time>
  );
}
