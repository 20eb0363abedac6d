import { arrayOf, type Scalar } from "./values.ts";

/** A column of the rows that a statement is given, all rows of a column as one array. */
export type InputColumn = {
  name: string;
  sql_type: string;
  /** What most rows have in it. It need not be sent, so the column must have no nulls. */
  usual?: Scalar | undefined;
};

/** The arrays, in the order of the columns. */
export function toArrays(columns: readonly InputColumn[], rows: readonly (readonly Scalar[])[]): string[] {
  return columns.map(({ usual }, at) => arrayOf(rows, (row) => (row[at] === usual ? null : (row[at] as Scalar))));
}

/**
 * The rows again, from arrays that begin with a parameter of this number. Arrays that are shorter than the first one are
 * filled up with nulls; the first must have none.
 */
export function fromArrays(columns: readonly InputColumn[], first: number): string {
  const arrays = columns.map(({ sql_type }, at) => `$${first + at}::${sql_type}[]`);
  const names = columns.map(({ name }) => name);
  return `select ${columns.map(valueOf).join(", ")} from unnest(${arrays.join(", ")}) as i(${names.join(", ")})`;
}

const valueOf = ({ name, usual }: InputColumn): string => {
  if (usual === undefined) return `i.${name}`;
  return `coalesce(i.${name}, ${typeof usual === "string" ? `'${usual}'` : usual}) as ${name}`;
};
