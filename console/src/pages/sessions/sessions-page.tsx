import { useEffect, useState } from "react";
import { go, sessionHref, useQueryState } from "../../app/router.ts";
import { useKeys } from "../../app/shortcuts.tsx";
import { type SessionSummary, type SummaryQuery, useMonikers } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Link } from "../../ui/link.tsx";
import { BulkBar } from "./bulk-bar.tsx";
import { SessionList } from "./session-list.tsx";
import { StatusFilter } from "./status-filter.tsx";
import { useSessionRows } from "./use-session-rows.ts";

export function SessionsPage() {
  const { query, change } = useFilter();
  const rows = useSessionRows(query);
  const [cursor, setCursor] = useState(0);
  const { selected, setSelected, toggle } = useSelection(query, () => setCursor(0));
  const move = (by: number) => setCursor(Math.min(Math.max(0, cursor + by), Math.max(0, rows.total - 1)));
  const here = rows.rowAt(cursor);
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => here && toggle(here),
    Enter: (event) => {
      if (here && !(event.target instanceof HTMLButtonElement)) go(sessionHref(here.session_id));
    },
    Escape: () => setSelected(new Map()),
  });
  return (
    <>
      <header className="flex flex-col gap-2.5 border-b border-line bg-surface px-4 py-3">
        <div className="flex flex-wrap items-center gap-2">
          <h1 className="order-1 mr-auto text-[16px] font-semibold sm:order-none">
            Sessions
            <span className="ml-2 text-[13px] font-normal text-muted" data-testid="total">
              {plural(rows.total, "session", "sessions", rows.exact)}
            </span>
          </h1>
          <MonikerFilter value={query.moniker ?? ""} onChange={(moniker) => change({ moniker }, { push: true })} />
          <SearchField value={query.q ?? ""} onChange={(q) => change({ q })} />
          <Link
            href="/start"
            className="order-2 inline-flex h-[30px] items-center gap-1.5 rounded-md bg-accent px-2.5 font-medium text-on-accent hover:brightness-110 sm:order-none"
          >
            <Icon name="plus" className="size-3.5" />
            Start an agent
          </Link>
        </div>
        <StatusFilter
          counts={rows.counts}
          exact={rows.exact}
          chosen={query.status?.[0] ?? ""}
          onChoose={(status) => change({ status }, { push: true })}
          agent_id={query.agent_id ?? null}
          onAnyAgent={() => change({ agent: "" }, { push: true })}
        />
      </header>
      {rows.error ? (
        <Failure error={rows.error} />
      ) : rows.total === 0 && !rows.isLoading ? (
        <Nothing isFiltered={Object.keys(query).length > 0} />
      ) : (
        <SessionList
          total={rows.total}
          rowAt={rows.rowAt}
          onRange={rows.show}
          cursor={cursor}
          onCursor={setCursor}
          selected={selected}
          onToggle={toggle}
        />
      )}
      <BulkBar
        selected={selected}
        total={rows.total}
        query={query}
        onSelect={setSelected}
        onClear={() => setSelected(new Map())}
      />
    </>
  );
}

/** The rows that were chosen. What a filter hides is not selected behind the reader's back. */
function useSelection(query: SummaryQuery, onFiltered: () => void) {
  const [selected, setSelected] = useState<ReadonlyMap<string, SessionSummary>>(new Map());
  const filter = JSON.stringify(query);
  const [filteredBy, setFilteredBy] = useState(filter);
  if (filter !== filteredBy) {
    setFilteredBy(filter);
    setSelected(new Map());
    onFiltered();
  }
  const toggle = (row: SessionSummary) => {
    const next = new Map(selected);
    if (!next.delete(row.session_id)) next.set(row.session_id, row);
    setSelected(next);
  };
  return { selected, setSelected, toggle };
}

function useFilter() {
  const [search, change] = useQueryState();
  const query: SummaryQuery = {};
  const [status, moniker, q, agent] = ["status", "moniker", "q", "agent"].map((name) => search.get(name));
  if (status) query.status = [status];
  if (moniker) query.moniker = moniker;
  if (q) query.q = q;
  if (agent) query.agent_id = agent;
  return { query, change };
}

function MonikerFilter({ value, onChange }: { value: string; onChange: (moniker: string) => void }) {
  const monikers = useMonikers().data ?? [];
  return (
    <select
      aria-label="Moniker"
      className="field order-3 h-[30px] w-auto sm:order-none"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">All monikers</option>
      {monikers.map(({ name }) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function SearchField({ value, onChange }: { value: string; onChange: (q: string) => void }) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  // The address says something else now: the way back, or a link.
  if (value !== known) {
    setKnown(value);
    setText(value);
  }
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), 200);
    return () => clearTimeout(timer);
  });
  return (
    <input
      type="search"
      data-search
      aria-label="Search sessions"
      placeholder="Search id, agent, text  ( / )"
      className="field order-4 h-[30px] min-w-0 flex-1 sm:order-none sm:w-60 sm:flex-none"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No session fits">
        <Link href="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Empty>
    );
  return (
    <Empty title="No agent has run yet">
      <p>
        <Link href="/start" className="text-accent underline">
          Start an agent
        </Link>{" "}
        here, or in a terminal:
      </p>
      <code className="mt-3 block rounded-md border border-line bg-sunken px-3 py-2 font-mono text-[12px] text-ink">
        npx everstep create joke --param subject=tea
      </code>
    </Empty>
  );
}
