import type { Value } from "./tables.ts";

/** A condition on columns, rendered for either engine: SQLite binds values, LanceDB has only text. */
export type Where =
  | { kind: "compare"; column: string; operator: "=" | "<" | "<=" | ">" | ">="; value: string | number }
  | { kind: "among"; column: string; values: readonly number[] }
  | { kind: "all"; parts: Where[] }
  | { kind: "any"; parts: Where[] };

export const all = (...parts: (Where | undefined)[]): Where => ({
  kind: "all",
  parts: parts.filter((part) => part !== undefined),
});
export const any = (...parts: Where[]): Where => ({ kind: "any", parts });
export const among = (column: string, values: readonly number[]): Where => ({ kind: "among", column, values });

type Operator = Extract<Where, { kind: "compare" }>["operator"];
/** A comparison with a value that may be absent: then there is no condition. */
export function compare(column: string, operator: Operator, value: string | number): Where;
export function compare(column: string, operator: Operator, value: string | number | undefined): Where | undefined;
export function compare(column: string, operator: Operator, value: string | number | undefined): Where | undefined {
  return value === undefined ? undefined : { kind: "compare", column, operator, value };
}

export function toSqlite(where: Where): { sql: string; values: Value[] } {
  const values: Value[] = [];
  const bind = (value: string | number): string => {
    values.push(value);
    return "?";
  };
  const list = (numbers: readonly number[]): string =>
    `(SELECT value FROM json_each(${bind(JSON.stringify(numbers))}))`;
  return { sql: render(where, { literal: bind, list }), values };
}

export const toLance = (where: Where): string =>
  render(where, { literal: quote, list: (numbers) => `(${numbers.map(quote).join(", ")})` });

/** The only way a value enters a LanceDB filter: a quote is doubled, everything else is literal. */
function quote(value: string | number): string {
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be compared with a column`);
  return String(value);
}

type Dialect = { literal: (value: string | number) => string; list: (values: readonly number[]) => string };

function render(where: Where, dialect: Dialect): string {
  switch (where.kind) {
    case "compare":
      return `${where.column} ${where.operator} ${dialect.literal(where.value)}`;
    case "among":
      return where.values.length === 0 ? "false" : `${where.column} IN ${dialect.list(where.values)}`;
    case "all":
      return where.parts.length === 0 ? "true" : join(where.parts, " AND ", dialect);
    case "any":
      return where.parts.length === 0 ? "false" : join(where.parts, " OR ", dialect);
  }
  return where satisfies never;
}

const join = (parts: Where[], word: string, dialect: Dialect): string =>
  `(${parts.map((part) => render(part, dialect)).join(word)})`;
