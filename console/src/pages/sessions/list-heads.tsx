import { type ListOrder, ORDERS } from "./list-order.ts";
import { ROW_COLUMNS } from "./session-row.tsx";

type HeadsProps = { order: ListOrder; onOrder: (order: ListOrder) => void };

/** Column heads; those that order the list are buttons. */
export function ListHeads({ order, onOrder }: HeadsProps) {
  const head = (by: ListOrder, name: string, align = "") => (
    <button
      type="button"
      aria-pressed={order === by}
      title={ORDERS[by]}
      onClick={() => onOrder(by)}
      className={`caption group flex items-center gap-1 hover:text-ink aria-pressed:text-accent ${align}`}
    >
      {name}
      <span className="sr-only">: {ORDERS[by]}</span>
      <span aria-hidden className={order === by ? "" : "invisible group-hover:visible group-focus-visible:visible"}>
        ↓
      </span>
    </button>
  );
  return (
    <div
      role="group"
      aria-label="Order of the list"
      className={`caption hidden border-b border-line bg-canvas px-4 py-1.5 md:grid ${ROW_COLUMNS}`}
    >
      <span />
      {head("live", "Status")}
      {head("agent", "Agent")}
      {head("moniker", "Moniker")}
      {head("steps", "Steps", "flex-row-reverse")}
      <span>Last text</span>
      {head("tokens", "Tokens", "flex-row-reverse")}
      {head("cost", "Cost", "flex-row-reverse")}
      {head("updated", "Updated", "flex-row-reverse")}
      {head("created", "Age", "flex-row-reverse")}
    </div>
  );
}
