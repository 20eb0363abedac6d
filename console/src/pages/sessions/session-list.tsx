import { useEffect, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import type { SessionSummary } from "../../data/queries.ts";
import { useMedia } from "../../ui/use-media.ts";
import { ROW_COLUMNS, SessionRow } from "./session-row.tsx";

type SessionListProps = {
  total: number;
  rowAt: (index: number) => SessionSummary | undefined;
  onRange: (from: number, to: number) => void;
  cursor: number;
  onCursor: (index: number) => void;
  selected: ReadonlyMap<string, SessionSummary>;
  onToggle: (row: SessionSummary) => void;
};

/** Heights of a row in pixels, as session-row.tsx has them. */
const WIDE_ROW = 40;
const NARROW_ROW = 62;

export function SessionList({ total, rowAt, onRange, cursor, onCursor, selected, onToggle }: SessionListProps) {
  const list = useRef<VListHandle>(null);
  const hasMoved = useRef(false);
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
    // The first row is not scrolled to before the reader moves.
    if (cursor > 0) hasMoved.current = true;
    if (hasMoved.current) list.current?.scrollToIndex(cursor, { align: "nearest" });
  }, [cursor]);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div aria-hidden className={`caption hidden border-b border-line bg-canvas px-4 py-1.5 md:grid ${ROW_COLUMNS}`}>
        <span />
        <span>Status</span>
        <span>Agent</span>
        <span>Moniker</span>
        <span className="text-right">Steps</span>
        <span>Last text</span>
        <span className="text-right">Tokens</span>
        <span className="text-right">Age</span>
      </div>
      <VList
        ref={list}
        aria-label="Sessions"
        role="region"
        tabIndex={0}
        data={Array.from({ length: total }, (_, index) => index)}
        itemSize={rowHeight}
        onScroll={look}
        onResize={look}
        className="flex-1"
      >
        {(index) => (
          <SessionRow
            key={index}
            row={rowAt(index)}
            isHere={index === cursor}
            isSelected={selected.has(rowAt(index)?.session_id ?? "")}
            onToggle={onToggle}
            onFocus={() => onCursor(index)}
          />
        )}
      </VList>
    </div>
  );
}
