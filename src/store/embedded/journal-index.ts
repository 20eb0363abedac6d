import { HISTORY_NAMES, type HistoryName, INDEXED } from "./tables.ts";

/** A session or conversation has many rows, an id has one. */
type Finder =
  | { kind: "many"; column: string; positions: Map<string, number[]> }
  | { kind: "one"; column: string; positions: Map<string, number> };
const UNIQUE = ["message_id", "action_id"];
/** `ids` are the row's indexed values, by which it is found. `sum` is its checksum. */
export type Entry = { pos: number; ids: string[]; sum: number };

/**
 * Positions of a history table's rows in the journal. On disk these indexes would dominate the writes of a commit; in memory
 * they cost little, since they only hold rows that wait to be archived.
 */
export class JournalIndex {
  readonly #finders: Finder[];
  /** By position. */
  #entries: Entry[] = [];
  /** How many entries are on disk. */
  #kept = 0;

  constructor(table: HistoryName) {
    this.#finders = INDEXED[table].map((column) =>
      UNIQUE.includes(column)
        ? { kind: "one", column, positions: new Map() }
        : { kind: "many", column, positions: new Map() },
    );
  }

  /** Ascending. */
  of(column: string, id: string): readonly number[] {
    const positions = this.#finders.find((finder) => finder.column === column)?.positions.get(id) ?? [];
    return typeof positions === "number" ? [positions] : positions;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    for (const [at, finder] of this.#finders.entries()) {
      const id = entry.ids[at] as string;
      if (finder.kind === "one") finder.positions.set(id, entry.pos);
      else if (finder.positions.has(id)) finder.positions.get(id)?.push(entry.pos);
      else finder.positions.set(id, [entry.pos]);
    }
  }

  /** The added entries are on disk. */
  keep(): void {
    this.#kept = this.#entries.length;
  }

  /** Entries added since `keep` were rolled back. */
  undo(): void {
    for (const { ids } of this.#entries.splice(this.#kept))
      for (const [at, finder] of this.#finders.entries()) {
        if (finder.kind === "one") finder.positions.delete(ids[at] as string);
        else finder.positions.get(ids[at] as string)?.pop();
      }
  }

  /** The last position of the next rows, at most `limit`; null if there are none. */
  nextEnd(after: number, upTo: number, limit: number): number | null {
    const from = this.#indexAfter(after);
    const last = this.#entries[Math.min(from + limit, this.#indexAfter(upTo)) - 1];
    return last === undefined || last.pos <= after ? null : last.pos;
  }

  /** The rows in this range. */
  entries(after: number, upTo: number): Entry[] {
    return this.#entries.slice(this.#indexAfter(after), this.#indexAfter(upTo));
  }

  /** Rows in this range left the journal, with exceptions. */
  remove(after: number, upTo: number, but: ReadonlySet<number>): void {
    const from = this.#indexAfter(after);
    const stretch = this.entries(after, upTo);
    const gone = stretch.filter(({ pos }) => !but.has(pos));
    this.#entries.splice(from, stretch.length, ...stretch.filter(({ pos }) => but.has(pos)));
    this.#kept = this.#entries.length;
    for (const [at, finder] of this.#finders.entries()) {
      const ids = gone.map((entry) => entry.ids[at] as string);
      if (finder.kind === "one") for (const id of ids) finder.positions.delete(id);
      else for (const id of new Set(ids)) this.#shorten(finder.positions, id, after, upTo, but);
    }
  }

  #shorten(positions: Map<string, number[]>, id: string, after: number, upTo: number, but: ReadonlySet<number>): void {
    const left = (positions.get(id) ?? []).filter((pos) => pos <= after || pos > upTo || but.has(pos));
    if (left.length > 0) positions.set(id, left);
    else positions.delete(id);
  }

  /** The index of the first entry after a position. */
  #indexAfter(pos: number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).pos <= pos) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export const newJournalIndexes = (): Record<HistoryName, JournalIndex> =>
  Object.fromEntries(HISTORY_NAMES.map((name) => [name, new JournalIndex(name)])) as Record<HistoryName, JournalIndex>;
