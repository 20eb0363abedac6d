import { JOURNAL_TABLES } from "./journal-sql.ts";

/** Every table of the journal. */
const SUMMED_TABLES = [...JOURNAL_TABLES, "session_documents", "message_keys", "message_numbers", "archived"] as const;
export type SummedTable = (typeof SUMMED_TABLES)[number];

/**
 * How many rows each table has, and what their checksums add up to. It is kept beside the commit counter, so that a row that
 * is gone, or back from an earlier time, is noticed by a start that adds them up.
 */
export class JournalTotals {
  /** Two numbers for each table. */
  static readonly LENGTH = SUMMED_TABLES.length * 2;
  readonly #now = new Float64Array(JournalTotals.LENGTH);
  readonly #kept = new Float64Array(JournalTotals.LENGTH);

  static from(numbers: Float64Array): JournalTotals {
    const totals = new JournalTotals();
    totals.#now.set(numbers);
    totals.keep();
    return totals;
  }

  copyTo(numbers: Float64Array): void {
    numbers.set(this.#now);
  }

  add(table: SummedTable, sum: number): void {
    this.#change(INDEX[table], 1, sum);
  }

  remove(table: SummedTable, sum: number): void {
    this.#change(INDEX[table], -1, -sum);
  }

  /** A row takes the place of another. */
  replace(table: SummedTable, before: number, sum: number): void {
    this.#change(INDEX[table], 0, sum - before);
  }

  clear(table: SummedTable): void {
    this.#now.fill(0, INDEX[table] * 2, INDEX[table] * 2 + 2);
  }

  /** What changed since is part of the journal. */
  keep(): void {
    this.#kept.set(this.#now);
  }

  /** What changed since `keep` came to nothing. */
  undo(): void {
    this.#now.set(this.#kept);
  }

  /** The first table in which the other has more, fewer or other rows. */
  difference(other: JournalTotals): { table: SummedTable; rows: number; expected: number } | null {
    for (const [index, table] of SUMMED_TABLES.entries()) {
      const [rows, sum] = [this.#now[index * 2] ?? 0, this.#now[index * 2 + 1]];
      const [otherRows, otherSum] = [other.#now[index * 2] ?? 0, other.#now[index * 2 + 1]];
      if (rows !== otherRows || sum !== otherSum) return { table, rows: otherRows, expected: rows };
    }
    return null;
  }

  #change(index: number, rows: number, sum: number): void {
    const at = index * 2;
    this.#now[at] = (this.#now[at] ?? 0) + rows;
    this.#now[at + 1] = ((this.#now[at + 1] ?? 0) + sum) | 0;
  }
}

const INDEX = Object.fromEntries(SUMMED_TABLES.map((table, index) => [table, index])) as Record<SummedTable, number>;
