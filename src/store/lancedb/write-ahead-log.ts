import { existsSync, readFileSync } from "node:fs";

/** A page as a commit left it in the log. */
type LoggedPage = { page: number; offset: number };

/** What SQLite would take from a write-ahead log: the pages of every whole commit in it, the last version of each. */
export type WriteAheadLog = {
  content: Buffer;
  page_size: number;
  pages: ReadonlyMap<number, LoggedPage>;
  /** Pages of the database after the last commit; null where there is no commit. */
  database_pages: number | null;
};

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;

/**
 * Reads the log beside a journal without SQLite, which would change both to look at it. Every frame has a checksum over all
 * that came before it; what follows the first one that is wrong is no part of the log.
 */
export function readWriteAheadLog(path: string): WriteAheadLog | null {
  if (!existsSync(path)) return null;
  const content = readFileSync(path);
  if (content.length < HEADER_BYTES) return null;
  const magic = content.readUInt32BE(0);
  if (magic !== MAGIC && magic !== MAGIC + 1) return null;
  const sum = new LogChecksum(content, magic === MAGIC);
  sum.add(0, HEADER_BYTES - 8);
  if (!sum.equals(HEADER_BYTES - 8)) return null;
  const page_size = content.readUInt32BE(8);
  const pages = new Map<number, LoggedPage>();
  let database_pages: number | null = null;
  let uncommitted: LoggedPage[] = [];
  const frame = FRAME_HEADER_BYTES + page_size;
  for (let at = HEADER_BYTES; at + frame <= content.length; at += frame) {
    const isOfThisLog = content.compare(content, 16, 24, at + 8, at + 16) === 0;
    sum.add(at, 8);
    sum.add(at + FRAME_HEADER_BYTES, page_size);
    if (!isOfThisLog || !sum.equals(at + 16)) break;
    uncommitted.push({ page: content.readUInt32BE(at), offset: at + FRAME_HEADER_BYTES });
    const size = content.readUInt32BE(at + 4);
    if (size === 0) continue;
    for (const logged of uncommitted) pages.set(logged.page, logged);
    database_pages = size;
    uncommitted = [];
  }
  return { content, page_size, pages, database_pages };
}

/** SQLite's checksum of a log: two sums over pairs of words, whose byte order the log's first word tells. */
class LogChecksum {
  readonly #content: Buffer;
  readonly #view: DataView;
  readonly #littleEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(content: Buffer, littleEndian: boolean) {
    this.#content = content;
    this.#view = new DataView(content.buffer, content.byteOffset, content.length);
    this.#littleEndian = littleEndian;
  }

  add(from: number, bytes: number): void {
    const view = this.#view;
    const littleEndian = this.#littleEndian;
    let first = this.#first;
    let second = this.#second;
    for (let at = from; at < from + bytes; at += 8) {
      first = (first + view.getUint32(at, littleEndian) + second) >>> 0;
      second = (second + view.getUint32(at + 4, littleEndian) + first) >>> 0;
    }
    this.#first = first;
    this.#second = second;
  }

  equals(at: number): boolean {
    return this.#content.readUInt32BE(at) === this.#first && this.#content.readUInt32BE(at + 4) === this.#second;
  }
}
