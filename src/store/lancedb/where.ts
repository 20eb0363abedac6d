import type { Value } from "./tables.ts";

/** A condition on columns, rendered for either engine: SQLite binds values, LanceDB has only text. */
export type Where =
  | { kind: "compare"; column: string; operator: "=" | "<" | "<=" | ">" | ">="; value: string | number }
  | { kind: "all"; parts: Where[] }
  | { kind: "any"; parts: Where[] };

export const all = (...parts: (Where | undefined)[]): Where => ({
  kind: "all",
  parts: parts.filter((part) => part !== undefined),
});
export const any = (...parts: Where[]): Where => ({ kind: "any", parts });

type Operator = Extract<Where, { kind: "compare" }>["operator"];
/** A comparison with a value that may be absent: then there is no condition. */
export function compare(column: string, operator: Operator, value: string | number): Where;
export function compare(column: string, operator: Operator, value: string | number | undefined): Where | undefined;
export function compare(column: string, operator: Operator, value: string | number | undefined): Where | undefined {
  return value === undefined ? undefined : { kind: "compare", column, operator, value };
}

export function toSqlite(where: Where): { sql: string; values: Value[] } {
  const values: Value[] = [];
  const sql = render(where, (value) => {
    values.push(value);
    return "?";
  });
  return { sql, values };
}

export const toLance = (where: Where): string => render(where, quote);

/** The only way a value enters a LanceDB filter: a quote is doubled, everything else is literal. */
function quote(value: string | number): string {
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be compared with a column`);
  return String(value);
}

function render(where: Where, literal: (value: string | number) => string): string {
  switch (where.kind) {
    case "compare":
      return `${where.column} ${where.operator} ${literal(where.value)}`;
    case "all":
      return where.parts.length === 0 ? "true" : join(where.parts, " AND ", literal);
    case "any":
      return where.parts.length === 0 ? "false" : join(where.parts, " OR ", literal);
  }
  return where satisfies never;
}

const join = (parts: Where[], word: string, literal: (value: string | number) => string): string =>
  `(${parts.map((part) => render(part, literal)).join(word)})`;
