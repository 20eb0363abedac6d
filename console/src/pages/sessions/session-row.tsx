import { sessionHref } from "../../app/router.ts";
import type { SessionSummary } from "../../data/queries.ts";
import { dollars, shortCount } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { SessionName } from "../../ui/session-name.tsx";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";
import { LastText } from "./last-text.tsx";

export const ROW_COLUMNS =
  "md:grid-cols-[18px_88px_minmax(120px,1.2fr)_92px_52px_minmax(120px,3fr)_64px_64px_80px_52px] md:gap-3";

type SessionRowProps = {
  row: SessionSummary | undefined;
  isHere: boolean;
  isSelected: boolean;
  onToggle: (row: SessionSummary) => void;
  onFocus: () => void;
};

export function SessionRow({ row, isHere, isSelected, onToggle, onFocus }: SessionRowProps) {
  if (!row) return <div className="h-[62px] border-b border-line md:h-10" aria-busy="true" />;
  const { session_id, agent_id } = row;
  return (
    <div
      data-testid="session-row"
      data-session={session_id}
      className={`relative grid h-[62px] grid-cols-[18px_88px_1fr_auto] content-center items-center gap-x-3 border-b border-line px-4 md:h-10 ${ROW_COLUMNS} ${isSelected ? "bg-accent-soft" : "bg-surface hover:bg-sunken"} ${isHere ? "shadow-[inset_3px_0_var(--accent)]" : ""}`}
    >
      <input
        type="checkbox"
        className="relative z-10 size-3.5 accent-[var(--accent)]"
        aria-label={`Select ${agent_id} ${session_id}`}
        checked={isSelected}
        onChange={() => onToggle(row)}
        onFocus={onFocus}
      />
      <Status status={row.status} />
      <Link
        href={sessionHref(session_id)}
        onFocus={onFocus}
        title={session_id}
        className="truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent"
      >
        <SessionName agent_id={agent_id} session_id={session_id} />
      </Link>
      <span className="hidden truncate text-muted md:block">{row.moniker}</span>
      <span className="hidden text-right text-muted tabular-nums md:block">{shortCount(row.iteration + 1)}</span>
      <span className="order-last col-span-3 col-start-2 truncate text-muted md:order-none md:col-span-1 md:col-start-auto">
        <LastText row={row} />
      </span>
      <span className="hidden text-right text-muted tabular-nums md:block">
        {row.tokens_used === 0 ? "–" : shortCount(row.tokens_used)}
      </span>
      <span className="hidden text-right text-muted tabular-nums md:block" data-testid="cost">
        {row.cost_usd === 0 ? "–" : dollars(row.cost_usd)}
      </span>
      <span className="hidden text-right text-muted tabular-nums md:block">
        <Age at={row.updated_at} />
      </span>
      <span className="text-right text-muted tabular-nums">
        <Age at={row.created_at} />
      </span>
    </div>
  );
}
