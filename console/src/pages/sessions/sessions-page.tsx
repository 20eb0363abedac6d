import { useEffect, useMemo, useState } from "react";
import { go, sessionHref, useQueryState } from "../../app/router.ts";
import { useKeys } from "../../app/shortcuts.tsx";
import { type SessionSummary, type SummaryQuery, useMonikers } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Link } from "../../ui/link.tsx";
import { BulkBar } from "./bulk-bar.tsx";
import { GroupChoice, OrderChoice, RangeFilter } from "./list-options.tsx";
import { COMPARE, type ListOrder, RANGES, sortOf, toListOrder } from "./list-order.ts";
import { SessionList } from "./session-list.tsx";
import { StatusFilter } from "./status-filter.tsx";
import { useLoadedRows } from "./use-loaded-rows.ts";
import { useSessionRows } from "./use-session-rows.ts";
import { ViewBar } from "./view-bar.tsx";

export function SessionsPage() {
  const filter = useFilter();
  const { query, change, order, isGrouped, isFiltered, search } = filter;
  const isLoaded = isGrouped || COMPARE[order] !== undefined;
  const loaded = useLoadedRows(query, { order, isGrouped }, isLoaded);
  const listed = useSessionRows(query, order, !isLoaded);
  const rows = isLoaded ? loaded : listed;
  const matchCount = isLoaded ? loaded.matchCount : listed.total;
  const setOrder = (next: ListOrder) => change({ order: next === "live" ? null : next }, { push: true });
  const [cursor, setCursor] = useState(0);
  const { selected, setSelected, toggle } = useSelection(search, () => setCursor(0));
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
      <ListHeader filter={filter} rows={rows} matchCount={matchCount} isLoaded={isLoaded} onOrder={setOrder} />
      {rows.error ? (
        <Failure error={rows.error} />
      ) : rows.total === 0 && !rows.isLoading ? (
        <Nothing isFiltered={isFiltered} />
      ) : (
        <SessionList
          total={rows.total}
          rowAt={rows.rowAt}
          onRange={rows.show}
          cursor={cursor}
          onCursor={setCursor}
          selected={selected}
          onToggle={toggle}
          order={order}
          onOrder={setOrder}
          groupAt={isGrouped ? loaded.groupAt : () => undefined}
        />
      )}
      <BulkBar
        selected={selected}
        total={matchCount}
        query={query}
        onSelect={setSelected}
        onClear={() => setSelected(new Map())}
      />
    </>
  );
}

type ListHeaderProps = {
  filter: ReturnType<typeof useFilter>;
  rows: Pick<ReturnType<typeof useSessionRows>, "total" | "exact" | "counts">;
  matchCount: number;
  /** All rows come from one request, which may not have all sessions. */
  isLoaded: boolean;
  onOrder: (order: ListOrder) => void;
};

/** The total and the filters. */
function ListHeader({
  filter: { query, change, order, range, isGrouped, search },
  rows,
  matchCount,
  isLoaded,
  onOrder,
}: ListHeaderProps) {
  const total = plural(matchCount, "session", "sessions", rows.exact);
  return (
    <header className="flex flex-col gap-2.5 border-b border-line bg-surface px-4 py-3">
      <div className="flex flex-wrap items-center gap-2">
        <h1 className="order-1 mr-auto text-[16px] font-semibold sm:order-none">
          Sessions{" "}
          <span className="ml-2 text-[13px] font-normal text-muted" data-testid="total">
            {total}
          </span>
        </h1>
        <MonikerFilter value={query.moniker ?? ""} onChange={(moniker) => change({ moniker }, { push: true })} />
        <RangeFilter value={range} onChange={(next) => change({ range: next }, { push: true })} />
        <OrderChoice order={order} onOrder={onOrder} />
        <GroupChoice isGrouped={isGrouped} onChange={(group) => change({ group }, { push: true })} />
        <SearchField value={query.q ?? ""} onChange={(q) => change({ q })} />
        <Link
          href="/start"
          className="order-2 inline-flex h-[30px] items-center gap-1.5 rounded-md bg-accent px-2.5 font-medium text-on-accent hover:brightness-110 sm:order-none"
        >
          <Icon name="plus" className="size-3.5" />
          Start an agent
        </Link>
      </div>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <StatusFilter
          counts={rows.counts}
          exact={rows.exact}
          chosen={query.status?.[0] ?? ""}
          onChoose={(status) => change({ status }, { push: true })}
          agent_id={query.agent_id ?? null}
          onAnyAgent={() => change({ agent: "" }, { push: true })}
        />
        <ViewBar search={search} />
      </div>
      {isLoaded && rows.total > 0 && rows.total < matchCount && (
        <p className="text-muted" role="status">
          {isGrouped ? "Grouped" : "Sorted"} among the newest {count(rows.total)} only, of {total}. A filter makes them
          fewer.
        </p>
      )}
    </header>
  );
}

/** The selected rows. Filtering drops what it hides. */
function useSelection(filter: string, onFiltered: () => void) {
  const [selected, setSelected] = useState<ReadonlyMap<string, SessionSummary>>(new Map());
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

/** The filters in the address. */
function useFilter() {
  const [params, change] = useQueryState();
  const [status, moniker, q, agent] = ["status", "moniker", "q", "agent"].map((name) => params.get(name));
  const order = toListOrder(params.get("order"));
  const range = params.get("range") ?? "";
  const span = RANGES.get(range)?.ms;
  // Computed once per choice, so that the list does not shift by itself.
  const since = useMemo(() => (span === undefined ? undefined : new Date(Date.now() - span).toISOString()), [span]);
  const filter: SummaryQuery = {};
  if (status) filter.status = [status];
  if (moniker) filter.moniker = moniker;
  if (q) filter.q = q;
  if (agent) filter.agent_id = agent;
  if (since) filter.since = since;
  const isFiltered = Object.keys(filter).length > 0;
  const sort = sortOf(order);
  const query = sort === "created_at" ? filter : { ...filter, sort };
  const isGrouped = params.get("group") === "agent";
  return { query, change, order, range, isGrouped, isFiltered, search: params.toString() };
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
  const [lastValue, setLastValue] = useState(value);
  // The address changed from elsewhere, e.g. by Back or a link.
  if (value !== lastValue) {
    setLastValue(value);
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
      className="field order-4 h-[30px] min-w-0 flex-1 basis-full sm:order-none sm:w-60 sm:flex-none sm:basis-auto"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No matching sessions">
        <Link href="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Empty>
    );
  return (
    <Empty title="No sessions yet">
      <p>
        <Link href="/start" className="text-accent underline">
          Start an agent
        </Link>{" "}
        here or from a terminal:
      </p>
      <code className="mt-3 block rounded-md border border-line bg-sunken px-3 py-2 font-mono text-[12px] text-ink">
        npx everstep create joke --param subject=tea
      </code>
    </Empty>
  );
}
