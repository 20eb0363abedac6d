import { HISTORY_NAMES, type HistoryName, INDEXED } from "./tables.ts";

/** A session or conversation has many rows, an id has one. */
type Finder =
  | { kind: "many"; column: string; owners: Map<string, Owner> }
  | { kind: "one"; column: string; positions: Map<string, number> };
type Owner = { id: string; positions: number[] };
const UNIQUE = ["message_id", "action_id"];
/** `ids` are the row's indexed values, by which it is found. `sum` is its checksum. */
export type Entry = { pos: number; ids: string[]; sum: number };

/**
 * Positions of a history table's rows in the journal. On disk these indexes would dominate the writes of a commit; in memory
 * they cost little, since they only hold rows that wait to be archived.
 *
 * Entries come and go with every step. They are kept as parallel lists, and the id of their owner once, so that the collector
 * has no objects to move for each.
 */
export class JournalIndex {
  readonly #finders: Finder[];
  /** Ascending. */
  readonly #positions: number[] = [];
  readonly #sums: number[] = [];
  /** For each finder. */
  readonly #ids: string[][];
  /** How many entries are on disk. */
  #kept = 0;

  constructor(table: HistoryName) {
    this.#finders = INDEXED[table].map((column) =>
      UNIQUE.includes(column)
        ? { kind: "one", column, positions: new Map() }
        : { kind: "many", column, owners: new Map() },
    );
    this.#ids = this.#finders.map(() => []);
  }

  /** Ascending. */
  of(column: string, id: string): readonly number[] {
    const finder = this.#finders.find((candidate) => candidate.column === column);
    if (finder?.kind === "many") return finder.owners.get(id)?.positions ?? [];
    const position = finder?.positions.get(id);
    return position === undefined ? [] : [position];
  }

  add({ pos, ids, sum }: Entry): void {
    this.#positions.push(pos);
    this.#sums.push(sum);
    for (const [at, finder] of this.#finders.entries()) {
      const id = ids[at] as string;
      if (finder.kind === "one") {
        finder.positions.set(id, pos);
        this.#ids[at]?.push(id);
        continue;
      }
      let owner = finder.owners.get(id);
      if (!owner) finder.owners.set(id, (owner = { id, positions: [] }));
      owner.positions.push(pos);
      this.#ids[at]?.push(owner.id);
    }
  }

  /** The added entries are on disk. */
  keep(): void {
    this.#kept = this.#positions.length;
  }

  /** Entries added since `keep` were rolled back. */
  undo(): void {
    for (const [at, finder] of this.#finders.entries())
      for (const id of this.#ids[at]?.splice(this.#kept) ?? []) {
        if (finder.kind === "one") finder.positions.delete(id);
        else finder.owners.get(id)?.positions.pop();
      }
    this.#positions.length = this.#kept;
    this.#sums.length = this.#kept;
  }

  /** The last position of the next rows, at most `limit`; null if there are none. */
  nextEnd(after: number, upTo: number, limit: number): number | null {
    const from = this.#indexAfter(after);
    const last = this.#positions[Math.min(from + limit, this.#indexAfter(upTo)) - 1];
    return last === undefined || last <= after ? null : last;
  }

  /** The rows in this range. */
  entries(after: number, upTo: number): Entry[] {
    const entries: Entry[] = [];
    const end = this.#indexAfter(upTo);
    for (let index = this.#indexAfter(after); index < end; index += 1)
      entries.push({
        pos: this.#positions[index] as number,
        ids: this.#ids.map((ids) => ids[index] as string),
        sum: this.#sums[index] as number,
      });
    return entries;
  }

  /** Rows in this range left the journal, with exceptions. */
  remove(after: number, upTo: number, but: ReadonlySet<number>): void {
    const [from, end] = [this.#indexAfter(after), this.#indexAfter(upTo)];
    const left: number[] = [];
    for (let index = from; index < end; index += 1) if (but.has(this.#positions[index] as number)) left.push(index);
    /** Returns what was in the range. */
    const cut = <Value>(list: Value[]): Value[] =>
      list.splice(from, end - from, ...left.map((index) => list[index] as Value));
    const stays = (pos: number): boolean => pos <= after || pos > upTo || but.has(pos);
    for (const [at, finder] of this.#finders.entries())
      for (const id of new Set(cut(this.#ids[at] as string[]))) {
        if (finder.kind === "many") shorten(finder.owners, id, stays);
        else if (!stays(finder.positions.get(id) as number)) finder.positions.delete(id);
      }
    cut(this.#positions);
    cut(this.#sums);
    this.#kept = this.#positions.length;
  }

  /** The index of the first entry after a position. */
  #indexAfter(pos: number): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#positions[middle] as number) <= pos) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function shorten(owners: Map<string, Owner>, id: string, stays: (pos: number) => boolean): void {
  const positions = owners.get(id)?.positions.filter(stays) ?? [];
  if (positions.length > 0) owners.set(id, { id, positions });
  else owners.delete(id);
}

export const newJournalIndexes = (): Record<HistoryName, JournalIndex> =>
  Object.fromEntries(HISTORY_NAMES.map((name) => [name, new JournalIndex(name)])) as Record<HistoryName, JournalIndex>;
