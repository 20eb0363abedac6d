import type { Values } from "./tables.ts";

/** Characters of rows that one read may bring into the thread's heap. A single row may be larger. */
const READ_CHARACTERS = 16 << 20;

/** A page, or how many of its rows fit into the thread at once: the rest is requested separately. */
export type PagePart<Row> = { kind: "rows"; rows: Row[] } | { kind: "too_large"; fits: number };

export function charactersIn(row: Values): number {
  let characters = 0;
  for (const value of row) if (typeof value === "string") characters += value.length;
  return characters;
}

/** Aborts a read that would take too much memory. */
export class PageTooLarge extends Error {
  override readonly name = "PageTooLarge";
  readonly fits: number;

  constructor(fits: number) {
    super(`${fits} rows are as much as is read at once`);
    this.fits = fits;
  }
}

/** What a read has brought into memory so far. */
export class PageSize {
  readonly #limit: number;
  #rows = 0;
  #characters = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether several times as much would have fit. */
  get isSmall(): boolean {
    return this.#characters < READ_CHARACTERS / 4;
  }

  add(row: Values): void {
    this.#rows += 1;
    this.#characters += charactersIn(row);
    if (this.#characters > READ_CHARACTERS && this.#limit > 1)
      throw new PageTooLarge(Math.max(1, Math.min(this.#rows - 1, this.#limit >> 1)));
  }
}

/**
 * In the thread: reads pages that fit. If those of a session, a conversation or an agent did not, it does not try again with as
 * many rows: LanceDB returns all of them at once.
 */
export class LimitedPages {
  /** How many rows fit per owner, oldest entry first. */
  readonly #fits = new Map<string, number>();

  async read<Row>(of: string, limit: number, read: (size: PageSize) => Promise<Row[]>): Promise<PagePart<Row>> {
    const fits = this.#fits.get(of) ?? limit;
    if (fits < limit) return { kind: "too_large", fits };
    const size = new PageSize(limit);
    try {
      const rows = await read(size);
      if (size.isSmall) this.#grow(of, limit);
      return { kind: "rows", rows };
    } catch (error) {
      if (!(error instanceof PageTooLarge)) throw error;
      this.#note(of, error.fits);
      return { kind: "too_large", fits: error.fits };
    }
  }

  #grow(of: string, limit: number): void {
    const fits = this.#fits.get(of);
    if (fits === undefined || limit < fits) return;
    if (fits * 2 > MOST_ROWS) this.#fits.delete(of);
    else this.#note(of, fits * 2);
  }

  #note(of: string, fits: number): void {
    this.#fits.delete(of);
    this.#fits.set(of, fits);
    const [oldest] = this.#fits.keys();
    if (this.#fits.size > MOST_ENTRIES && oldest !== undefined) this.#fits.delete(oldest);
  }
}

/** Larger pages are rarely requested. */
const MOST_ROWS = 500;
const MOST_ENTRIES = 1000;

/** Outside the thread: assembles a page from as many parts as needed. */
export async function wholePage<Row>(
  { limit, offset }: { limit: number; offset: number },
  read: (part: { limit: number; offset: number }) => Promise<PagePart<Row>>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let most = limit;
  while (rows.length < limit) {
    const count = Math.min(most, limit - rows.length);
    const part = await read({ limit: count, offset: offset + rows.length });
    if (part.kind === "too_large") {
      most = part.fits;
      continue;
    }
    for (const row of part.rows) rows.push(row);
    if (part.rows.length < count) break;
  }
  return rows;
}
