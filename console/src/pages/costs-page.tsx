import { href, useQueryState } from "../app/router.ts";
import { type CostRow, type CostsBy, useCosts } from "../data/costs.ts";
import { Empty, Failure } from "../ui/empty.tsx";
import { count, dollars, plural } from "../ui/format.ts";
import { Link } from "../ui/link.tsx";
import { Page } from "../ui/page.tsx";
import { Section } from "../ui/section.tsx";
import { Amount, Cell, Row, Table } from "../ui/table.tsx";

const DAY_MS = 86_400_000;
const GROUPS: Readonly<Record<CostsBy, { tab: string; head: string; none: string }>> = {
  day: { tab: "By day", head: "Day (UTC)", none: "–" },
  agent: { tab: "By agent", head: "Agent", none: "–" },
  model: { tab: "By model", head: "Model", none: "no model" },
};
const isGroup = (value: string | null): value is CostsBy => value !== null && value in GROUPS;
const RANGES = [7, 30, 90];
const DEFAULT_RANGE = 30;

/** What sessions cost, by day, agent or model. */
export default function CostsPage() {
  const [query, change] = useQueryState();
  const groupParam = query.get("by");
  const by: CostsBy = isGroup(groupParam) ? groupParam : "day";
  const range = RANGES.find((days) => String(days) === query.get("days")) ?? DEFAULT_RANGE;
  // The first day of the range, which includes today.
  const since = new Date(Date.now() - (range - 1) * DAY_MS).toISOString().slice(0, 10);
  const { data, error } = useCosts(by, since);
  return (
    <Page
      title="Costs"
      note={data && `${dollars(data.total.cost_usd)} in ${plural(range, "day")}`}
      aside={<Range value={range} onChange={(days) => change({ days: days === DEFAULT_RANGE ? null : days })} />}
    >
      <div className="mx-auto flex max-w-4xl flex-col gap-4 p-4">
        <div role="group" aria-label="Group by" className="flex gap-1">
          {Object.entries(GROUPS).map(([group, { tab }]) => (
            <button
              key={group}
              type="button"
              aria-pressed={group === by}
              onClick={() => change({ by: group === "day" ? null : group }, { push: true })}
              className="rounded-full border border-line px-3 py-0.5 hover:bg-sunken aria-pressed:border-accent aria-pressed:bg-accent-soft"
            >
              {tab}
            </button>
          ))}
        </div>
        {error && <Failure error={error} />}
        {!data && !error && <p className="text-muted">Loading…</p>}
        {data && data.by === by && (
          <>
            {data.costs.length === 0 ? (
              <Empty title="No usage in this period">Sessions that use a model are summed up here.</Empty>
            ) : (
              <>
                {by === "day" && <Days rows={data.costs} since={since} days={range} />}
                <CostTable by={by} rows={data.costs} />
              </>
            )}
            <p className="text-[12px] text-muted">
              Each session counts in full on the day it started. Prices are those known on {data.prices_as_of}; models
              without a known price count as $0.
            </p>
          </>
        )}
      </div>
    </Page>
  );
}

function Range({ value, onChange }: { value: number; onChange: (days: number) => void }) {
  return (
    <select
      aria-label="Time"
      className="field h-[30px] w-auto"
      value={value}
      onChange={(event) => onChange(Number(event.target.value))}
    >
      {RANGES.map((days) => (
        <option key={days} value={days}>
          Last {days} days
        </option>
      ))}
    </select>
  );
}

/** A bar chart of days; the table below has the numbers. */
function Days({ rows, since, days }: { rows: CostRow[]; since: string; days: number }) {
  const byDay = new Map(rows.map((row) => [row.key, row]));
  const all = Array.from({ length: days }, (_, index) =>
    new Date(Date.parse(since) + index * DAY_MS).toISOString().slice(0, 10),
  );
  const hasCosts = rows.some(({ cost_usd }) => cost_usd > 0);
  const heightOf = (row: CostRow | undefined): number => (hasCosts ? row?.cost_usd : row?.tokens_used) ?? 0;
  const most = Math.max(...rows.map(heightOf));
  return (
    <Section
      title={hasCosts ? "Cost per day" : "Tokens per day"}
      aside={<span className="text-muted">highest: {hasCosts ? dollars(most) : count(most)}</span>}
    >
      <div aria-hidden data-testid="days" className="panel px-3 pt-3 pb-2">
        <div className="flex h-36 items-end gap-px">
          {all.map((day) => {
            const row = byDay.get(day);
            const share = most > 0 ? heightOf(row) / most : 0;
            return (
              <div
                key={day}
                data-day={day}
                title={`${day}: ${dollars(row?.cost_usd ?? 0)}, ${plural(row?.tokens_used ?? 0, "token")}`}
                className="flex h-full min-w-0 flex-1 items-end"
              >
                <div
                  className={`w-full rounded-t-sm ${share > 0 ? "min-h-0.5 bg-accent" : "h-px bg-line"}`}
                  style={share > 0 ? { height: `${share * 100}%` } : {}}
                />
              </div>
            );
          })}
        </div>
        <p className="mt-1 flex justify-between text-[11px] text-muted tabular-nums">
          {[all[0], all[Math.floor(days / 2)], all.at(-1)].map((day) => (
            <span key={day}>{day}</span>
          ))}
        </p>
      </div>
    </Section>
  );
}

function CostTable({ by, rows }: { by: CostsBy; rows: CostRow[] }) {
  const { head, none } = GROUPS[by];
  return (
    <Table
      label="Costs"
      heads={[
        head,
        { name: "Sessions", isAmount: true },
        { name: "Tokens", isAmount: true },
        { name: "Cost", isAmount: true },
      ]}
    >
      {rows.map((row) => (
        <Row key={row.key} data-testid="cost">
          <Cell className="wrap-anywhere">
            {by === "agent" && row.key !== null ? (
              <Link href={href([], { agent: row.key })} className="text-accent hover:underline">
                {row.key}
              </Link>
            ) : (
              (row.key ?? none)
            )}
          </Cell>
          <Amount>{count(row.sessions)}</Amount>
          <Amount>{count(row.tokens_used)}</Amount>
          <Amount>{row.cost_usd === 0 ? "–" : dollars(row.cost_usd)}</Amount>
        </Row>
      ))}
    </Table>
  );
}
