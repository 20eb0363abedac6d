import { useState } from "react";
import { go, href } from "../../app/router.ts";
import { get } from "../../data/api.ts";
import { type SessionSummary, type Summaries, type SummaryQuery } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { plural } from "../../ui/format.ts";
import { attempt } from "../../ui/toast.tsx";
import { BulkDialog, type BulkVerb, canChange, PASSIVE } from "./bulk-dialog.tsx";

type Selection = ReadonlyMap<string, SessionSummary>;
type BulkBarProps = {
  selected: Selection;
  total: number;
  query: SummaryQuery;
  onSelect: (selected: Selection) => void;
  onClear: () => void;
};

/** Actions on the selected rows. */
export function BulkBar({ selected, total, query, onSelect, onClear }: BulkBarProps) {
  const [verb, setVerb] = useState<BulkVerb | null>(null);
  if (selected.size === 0) return null;
  const selectAll = () => attempt(async () => onSelect(await allRows(query)));
  return (
    <div
      role="toolbar"
      aria-label="Selected sessions"
      className="flex flex-wrap items-center gap-2 border-t border-line bg-raised px-4 py-2"
    >
      <span className="font-medium" data-testid="selected">
        {plural(selected.size, "session")} selected
      </span>
      {selected.size < total && (
        <Button look="ghost" onClick={() => void selectAll()}>
          Select all {total.toLocaleString()}
        </Button>
      )}
      <span className="mr-auto" />
      {selected.size === 2 && <Button onClick={() => go(href(["compare", ...selected.keys()]))}>Compare</Button>}
      {BUTTONS.map(([name, label]) => {
        const isOf = canChange(name, selected.values());
        return (
          <Button
            key={name}
            disabled={!isOf}
            title={isOf ? undefined : `None of them can be ${PASSIVE[name]}`}
            onClick={() => setVerb(name)}
          >
            {label}…
          </Button>
        );
      })}
      <Button look="ghost" onClick={onClear}>
        Clear
      </Button>
      {verb && (
        <BulkDialog
          verb={verb}
          sessions={[...selected.values()]}
          onClose={() => setVerb(null)}
          onDone={() => {
            setVerb(null);
            onClear();
          }}
        />
      )}
    </div>
  );
}

const BUTTONS: [BulkVerb, string][] = [
  ["pause", "Pause"],
  ["resume", "Resume"],
  ["destroy", "Destroy"],
];

const MOST = 500;

async function allRows(query: SummaryQuery): Promise<Selection> {
  const rows = new Map<string, SessionSummary>();
  for (let after: string | undefined; ; ) {
    const { sessions, next } = await get<Summaries>("/api/session-summaries", { ...query, limit: MOST, after });
    for (const row of sessions) rows.set(row.session_id, row);
    if (next === null) return rows;
    after = next;
  }
}
