import { type ListOrder, ORDERS, RANGES, toListOrder } from "./list-order.ts";

const SELECT = "field order-3 h-[30px] w-auto sm:order-none";

export function RangeFilter({ value, onChange }: { value: string; onChange: (range: string) => void }) {
  return (
    <select aria-label="Time" className={SELECT} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">Any time</option>
      {[...RANGES].map(([range, { label }]) => (
        <option key={range} value={range}>
          {label}
        </option>
      ))}
    </select>
  );
}

type GroupChoiceProps = { isGrouped: boolean; onChange: (group: "agent" | null) => void };

export function GroupChoice({ isGrouped, onChange }: GroupChoiceProps) {
  return (
    <label className="order-3 flex h-[30px] items-center gap-1.5 sm:order-none">
      <input
        type="checkbox"
        className="size-3.5 accent-[var(--accent)]"
        checked={isGrouped}
        onChange={(event) => onChange(event.target.checked ? "agent" : null)}
      />
      Group by agent
    </label>
  );
}

/** For narrow screens, where the list has no column heads. */
export function OrderChoice({ order, onOrder }: { order: ListOrder; onOrder: (order: ListOrder) => void }) {
  return (
    <select
      aria-label="Order"
      className={`${SELECT} md:hidden`}
      value={order}
      onChange={(event) => onOrder(toListOrder(event.target.value))}
    >
      {Object.entries(ORDERS).map(([name, label]) => (
        <option key={name} value={name}>
          {`${label[0]?.toUpperCase()}${label.slice(1)}`}
        </option>
      ))}
    </select>
  );
}
