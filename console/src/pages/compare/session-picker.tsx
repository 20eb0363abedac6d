import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { type SessionSummary, summariesPage } from "../../data/queries.ts";
import { Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";

type SessionPickerProps = { label: string; without: string | undefined; onPick: (session_id: string) => void };

/** Finds a session by its agent, id, moniker or last text. */
export function SessionPicker({ label, without, onPick }: SessionPickerProps) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const q = useDeferredValue(typed.trim());
  const { data, error } = useQuery(summariesPage(q === "" ? {} : { q }, 0, 20));
  const rows = data?.sessions.filter(({ session_id }) => session_id !== without) ?? [];
  return (
    <div className="flex flex-col gap-2">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      <input
        id={id}
        className="field"
        type="search"
        data-search
        placeholder="Agent, id, moniker or last text…"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      {error && <Failure error={error} />}
      <ul className="panel overflow-hidden" aria-label={label}>
        {rows.map((row) => (
          <li key={row.session_id} className="border-b border-line last:border-0">
            <button
              type="button"
              data-session={row.session_id}
              className="flex w-full flex-wrap items-baseline gap-x-3 px-3 py-2 text-left hover:bg-sunken"
              onClick={() => onPick(row.session_id)}
            >
              <Choice row={row} />
            </button>
          </li>
        ))}
        {data && rows.length === 0 && <li className="px-3 py-2 text-muted">No matching sessions.</li>}
      </ul>
    </div>
  );
}

const Choice = ({ row }: { row: SessionSummary }) => (
  <>
    <span className="font-medium wrap-anywhere">{row.agent_id}</span>
    <span className="text-muted">{row.moniker}</span>
    <Status status={row.status} />
    <span className="ml-auto text-muted">
      {plural(row.iteration + 1, "step")} · <Age at={row.created_at} />
    </span>
    <span className="w-full font-mono text-[11px] text-muted wrap-anywhere">{row.session_id}</span>
  </>
);
