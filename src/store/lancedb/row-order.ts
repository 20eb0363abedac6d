import type { Order } from "./archive.ts";
import { columnIndex, type HistoryName, type Value, type Values } from "./tables.ts";

/** An order of rows, for SQLite, for LanceDB, and for merging what both answer. */
export type RowOrder = { sql: string; lance: Order; compare: (a: Values, b: Values) => number };

function orderBy(table: HistoryName, ...keys: [column: string, direction: 1 | -1][]): RowOrder {
  const indexed = keys.map(([column, direction]) => ({ index: columnIndex(table, column), direction }));
  return {
    sql: keys.map(([column, direction]) => `${column}${direction < 0 ? " DESC" : ""}`).join(", "),
    lance: keys.map(([columnName, direction]) => ({ columnName, ascending: direction > 0 })),
    compare(a, b) {
      for (const { index, direction } of indexed) {
        const [left, right] = [a[index] as NonNullable<Value>, b[index] as NonNullable<Value>];
        if (left !== right) return left < right ? -direction : direction;
      }
      return 0;
    },
  };
}

export const BY_ITERATION = orderBy("agent_steps", ["iteration", 1], ["id", 1]);
export const BY_NUMBER = orderBy("conversation_messages", ["number", 1]);
export const NEWEST_ACTION = orderBy("queue", ["action_id", -1]);
