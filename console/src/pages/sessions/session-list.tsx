import { useEffect, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import type { SessionSummary } from "../../data/queries.ts";
import { useMedia } from "../../ui/use-media.ts";
import { GroupHead } from "./group-head.tsx";
import { ListHeads } from "./list-heads.tsx";
import type { ListOrder } from "./list-order.ts";
import { SessionRow } from "./session-row.tsx";
import type { AgentGroup } from "./use-loaded-rows.ts";

type SessionListProps = {
  total: number;
  rowAt: (index: number) => SessionSummary | undefined;
  onRange: (from: number, to: number) => void;
  cursor: number;
  onCursor: (index: number) => void;
  selected: ReadonlyMap<string, SessionSummary>;
  onToggle: (row: SessionSummary) => void;
  order: ListOrder;
  onOrder: (order: ListOrder) => void;
  /** The group that starts with a row. */
  groupAt: (index: number) => AgentGroup | undefined;
};

/** Row heights in pixels, as in session-row.tsx. */
const WIDE_ROW = 40;
const NARROW_ROW = 62;

export function SessionList(props: SessionListProps) {
  const { total, rowAt, onRange, cursor, onCursor, selected, onToggle, order, onOrder, groupAt } = props;
  const list = useRef<VListHandle>(null);
  const hasMoved = useRef(false);
  const focused = useRef<number | null>(null);
  const rowHeight = useMedia("(max-width: 767px)") ? NARROW_ROW : WIDE_ROW;
  const look = () => {
    const handle = list.current;
    if (!handle) return;
    onRange(
      handle.findItemIndex(handle.scrollOffset),
      handle.findItemIndex(handle.scrollOffset + Math.max(handle.viewportSize, rowHeight)),
    );
  };
  useEffect(() => {
    // Not before the reader moves.
    if (cursor > 0) hasMoved.current = true;
    // A focused row is in view already; scrolling under a pressed button would lose the click.
    if (hasMoved.current && cursor !== focused.current) list.current?.scrollToIndex(cursor, { align: "nearest" });
    focused.current = null;
  }, [cursor]);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <ListHeads order={order} onOrder={onOrder} />
      <VList
        ref={list}
        aria-label="Sessions"
        role="region"
        tabIndex={0}
        data-scroll
        data={Array.from({ length: total }, (_, index) => index)}
        itemSize={rowHeight}
        onScroll={look}
        onResize={look}
        className="flex-1"
      >
        {(index) => {
          const group = groupAt(index);
          return (
            <div key={index}>
              {group && <GroupHead group={group} />}
              <SessionRow
                row={rowAt(index)}
                isHere={index === cursor}
                isSelected={selected.has(rowAt(index)?.session_id ?? "")}
                onToggle={onToggle}
                onFocus={() => {
                  focused.current = index;
                  onCursor(index);
                }}
              />
            </div>
          );
        }}
      </VList>
    </div>
  );
}
