import type { ReactNode } from "react";
import type { SessionStatus } from "../../data/queries.ts";
import { STATUSES } from "../../data/statuses.ts";
import { count } from "../../ui/format.ts";
import { Status } from "../../ui/status.tsx";

type StatusFilterProps = {
  counts: Record<SessionStatus, number> | undefined;
  /** False: there are at least this many. */
  exact: boolean;
  chosen: string;
  onChoose: (status: string) => void;
  agent_id: string | null;
  onAnyAgent: () => void;
};

/** Counts by status; a click filters. */
export function StatusFilter({ counts, exact, chosen, onChoose, agent_id, onAnyAgent }: StatusFilterProps) {
  const total = counts ? Object.values(counts).reduce((sum, value) => sum + value, 0) : 0;
  const shown = STATUSES.filter((status) => (counts?.[status] ?? 0) > 0 || status === chosen);
  return (
    <div role="group" aria-label="Status" className="-mx-1 flex max-w-full gap-1 overflow-x-auto px-1 py-0.5">
      <Chip isOn={chosen === ""} onClick={() => onChoose("")}>
        <span className="font-medium">All</span>
        <Figure value={total} exact={exact} />
      </Chip>
      {shown.map((status) => (
        <Chip key={status} isOn={chosen === status} onClick={() => onChoose(chosen === status ? "" : status)}>
          <Status status={status} />
          <Figure value={counts?.[status] ?? 0} exact={exact} />
        </Chip>
      ))}
      {agent_id !== null && (
        <Chip isOn onClick={onAnyAgent}>
          agent {agent_id} <span aria-hidden>✕</span>
          <span className="sr-only">, show every agent</span>
        </Chip>
      )}
    </div>
  );
}

type ChipProps = { isOn: boolean; onClick: () => void; children: ReactNode };
const Chip = ({ isOn, onClick, children }: ChipProps) => (
  <button
    type="button"
    aria-pressed={isOn}
    onClick={onClick}
    className="flex shrink-0 items-center gap-2 rounded-full border border-line px-2.5 py-0.5 hover:bg-sunken aria-pressed:border-accent aria-pressed:bg-accent-soft"
  >
    {children}
  </button>
);

const Figure = ({ value, exact }: { value: number; exact: boolean }) => (
  <span className="tabular-nums text-ink">
    {count(value)}
    {!exact && "+"}
  </span>
);
