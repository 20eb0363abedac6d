import { crc32 } from "node:zlib";
import { GIVEN } from "./packed-rows.ts";
import { type EmbeddedTables, type HistoryName, splitKey, type Values } from "./tables.ts";

/**
 * LanceDB does not notice a byte that a bad disk or a bad copy changed, so a row of history carries the checksum of its
 * text in the journal, and is put together and compared when it is read. Above the 32 bits of the checksum stands how many
 * columns the text had: a table may have got more since.
 */
export const checksumOf = (text_sum: number, width: number): number => text_sum + width * WIDTH;
const WIDTH = 2 ** 32;
/** What the tables had when rows did not carry it. */
const FIRST_WIDTH: Readonly<Record<HistoryName, number>> = { agent_steps: 20, conversation_messages: 18, queue: 17 };

/** Rows of these tables have a sort key, which tells these two columns: each column less makes a page faster. */
const TOLD_BY_KEY: Partial<Record<HistoryName, [id: string, number: string]>> = {
  agent_steps: ["session_id", "iteration"],
  conversation_messages: ["conversation_id", "number"],
};

/** How a row of history is read from LanceDB and compared with its checksum. */
export class CheckedRows {
  /** The columns that a whole row is put together from. */
  readonly columns: readonly string[];
  readonly #table: HistoryName;
  /** Where each column read belongs in the row; -1 for what is none of its own. */
  readonly #places: readonly number[];
  readonly #toldPlaces: readonly [id: number, number: number] | null;
  readonly #givenPlaces: readonly number[];

  constructor(tables: EmbeddedTables, table: HistoryName) {
    const names = tables.columns[table].map(({ name }) => name);
    const told = TOLD_BY_KEY[table];
    this.#table = table;
    this.columns = [...names.filter((name) => !told?.includes(name)), "checksum", ...(told ? ["sort_key"] : [])];
    this.#places = this.columns.map((name) => names.indexOf(name));
    this.#toldPlaces = told ? [names.indexOf(told[0]), names.indexOf(told[1])] : null;
    this.#givenPlaces = GIVEN[table].map((name) => names.indexOf(name));
  }

  /** Puts a row together from the columns; null where it is not what was written. */
  check(read: Values): Values | null {
    const row: Values = [];
    for (const [at, place] of this.#places.entries()) if (place >= 0) row[place] = read[at] ?? null;
    if (this.#toldPlaces) {
      const [id, number] = splitKey(read[this.columns.indexOf("sort_key")] as string);
      row[this.#toldPlaces[0]] = id ?? null;
      row[this.#toldPlaces[1]] = Number(number);
    }
    const checksum = Number(read[this.columns.indexOf("checksum")]);
    const width = Math.floor(checksum / WIDTH) || FIRST_WIDTH[this.#table];
    const text = row.slice(0, width);
    for (const place of this.#givenPlaces) text[place] = null;
    const isWhole = crc32(JSON.stringify(text)) === checksum % WIDTH;
    return isWhole && row.slice(width).every((value) => value === null) ? row : null;
  }
}
