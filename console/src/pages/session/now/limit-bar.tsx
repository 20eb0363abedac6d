import { span, useNow } from "../../../ui/time.tsx";

type LimitBarProps = {
  label: string;
  used: string;
  /** As text; null where there is no limit. */
  most: string | null;
  /** 1 is the limit. */
  share: number;
};

const NEARLY = 0.8;

/** Usage of a limit as text and as a bar that turns to a warning. */
export function LimitBar({ label, used, most, share }: LimitBarProps) {
  const percent = Math.min(100, Math.max(0, Math.round(share * 100)));
  const look = share >= 1 ? "bg-bad" : share >= NEARLY ? "bg-warn" : "bg-accent";
  return (
    <div data-testid="limit" data-limit={label}>
      <div className="flex items-baseline justify-between gap-2">
        <span className="text-muted">{label}</span>
        <span className="text-right tabular-nums">
          {used}
          <span className="text-muted">{most === null ? "" : ` of ${most}`}</span>
        </span>
      </div>
      {most !== null && (
        <div
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={percent}
          aria-valuetext={`${used} of ${most}`}
          className="mt-1 h-1.5 overflow-hidden rounded-full bg-sunken"
        >
          <div className={`h-full rounded-full ${look}`} style={{ width: `${percent}%` }} />
        </div>
      )}
    </div>
  );
}

/** Elapsed time as a limit bar. It stands still at `until`. */
export function TimeBar({
  label,
  since,
  until,
  seconds,
}: {
  label: string;
  since: string;
  until?: string | null;
  seconds: number | undefined;
}) {
  const now = useNow();
  const passed = Math.max(0, (until ? Date.parse(until) : now) - Date.parse(since));
  return (
    <LimitBar
      label={label}
      used={span(passed)}
      most={seconds === undefined ? null : span(seconds * 1000)}
      share={seconds === undefined ? 0 : passed / (seconds * 1000)}
    />
  );
}
