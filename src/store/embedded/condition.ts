import type { Value } from "./tables.ts";

/** A condition on columns, rendered for either engine: SQLite binds values, LanceDB takes only text. */
export type Condition =
  | { kind: "compare"; column: string; operator: "=" | "<" | "<=" | ">" | ">="; value: string | number }
  | { kind: "among"; column: string; values: readonly (string | number)[] }
  | { kind: "all"; parts: Condition[] }
  | { kind: "any"; parts: Condition[] };

export const all = (...parts: (Condition | undefined)[]): Condition => ({
  kind: "all",
  parts: parts.filter((part) => part !== undefined),
});
export const any = (...parts: Condition[]): Condition => ({ kind: "any", parts });
export const among = (column: string, values: readonly (string | number)[]): Condition => ({
  kind: "among",
  column,
  values,
});

type Operator = Extract<Condition, { kind: "compare" }>["operator"];
/** A comparison with an optional value; without it there is no condition. */
export function compare(column: string, operator: Operator, value: string | number): Condition;
export function compare(column: string, operator: Operator, value: string | number | undefined): Condition | undefined;
export function compare(column: string, operator: Operator, value: string | number | undefined): Condition | undefined {
  return value === undefined ? undefined : { kind: "compare", column, operator, value };
}

/** Whether no row can match, so that none need be looked for. */
export function matchesNothing(condition: Condition): boolean {
  switch (condition.kind) {
    case "compare":
      return false;
    case "among":
      return condition.values.length === 0;
    case "all":
      return condition.parts.some(matchesNothing);
    case "any":
      return condition.parts.every(matchesNothing);
  }
  return condition satisfies never;
}

export function toSqlite(condition: Condition): { sql: string; values: Value[] } {
  const values: Value[] = [];
  const bind = (value: string | number): string => {
    values.push(value);
    return "?";
  };
  const list = (listed: readonly (string | number)[]): string =>
    `(SELECT value FROM json_each(${bind(JSON.stringify(listed))}))`;
  return { sql: render(condition, { literal: bind, list }), values };
}

export const toLance = (condition: Condition): string =>
  render(condition, { literal: quote, list: (listed) => `(${listed.map(quote).join(", ")})` });

/** The only way a value enters a LanceDB filter: quotes are doubled, everything else is literal. */
function quote(value: string | number): string {
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be compared with a column`);
  return String(value);
}

type Dialect = { literal: (value: string | number) => string; list: (values: readonly (string | number)[]) => string };

function render(condition: Condition, dialect: Dialect): string {
  switch (condition.kind) {
    case "compare":
      return `${condition.column} ${condition.operator} ${dialect.literal(condition.value)}`;
    case "among":
      return condition.values.length === 0 ? "false" : `${condition.column} IN ${dialect.list(condition.values)}`;
    case "all":
      return condition.parts.length === 0 ? "true" : join(condition.parts, " AND ", dialect);
    case "any":
      return condition.parts.length === 0 ? "false" : join(condition.parts, " OR ", dialect);
  }
  return condition satisfies never;
}

const join = (parts: Condition[], word: string, dialect: Dialect): string =>
  `(${parts.map((part) => render(part, dialect)).join(word)})`;
