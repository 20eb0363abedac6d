import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { JournalTotals } from "./journal-totals.ts";

/**
 * How far the journal was written and what it then held, kept apart from it: SQLite takes a log that is cut, damaged or
 * missing for a shorter one, and what was acknowledged would be gone without a word.
 *
 * COUNTER-1  It tells of what is on disk only, so it is never ahead of the journal. Every transaction takes the journal to a later
 *     place: a commit to a higher position, any other to a higher revision. A journal before the place that was counted lost
 *     transactions.
 * COUNTER-2  The totals are those at that very place, so a journal at that place has these totals.
 * COUNTER-3  It is written in turns to two slots, each with its checksum: one that is torn or damaged leaves the other, which tells
 *     less.
 * COUNTER-4  A write that fails is no failure of the commit, which is on disk: the counter stays behind, and less is noticed.
 *
 * It is not synced with every commit: after a loss of power it may be behind as well.
 */
export class CommitCounter {
  readonly #file: number;
  readonly #slot = new Slot();
  #isSynced = true;

  constructor(path: string) {
    const before = newestSlot(path);
    this.#file = openSync(path, existsSync(path) ? "r+" : "w+", 0o600);
    this.#slot.numbers[MAGIC_AT] = MAGIC;
    this.#slot.numbers[SEQUENCE_AT] = before?.numbers[SEQUENCE_AT] ?? 0;
  }

  /** Null where nothing can be read. */
  static read(path: string): Counted | null {
    const numbers = newestSlot(path)?.numbers;
    if (!numbers) return null;
    return {
      position: numbers[POSITION_AT] ?? 0,
      revision: numbers[REVISION_AT] ?? 0,
      totals: JournalTotals.from(numbers.subarray(TOTALS_AT, TOTALS_AT + JournalTotals.LENGTH)),
    };
  }

  record({ position, revision, totals }: Counted): void {
    const { numbers, bytes } = this.#slot;
    const sequence = (numbers[SEQUENCE_AT] ?? 0) + 1;
    numbers[SEQUENCE_AT] = sequence;
    numbers[POSITION_AT] = position;
    numbers[REVISION_AT] = revision;
    totals.copyTo(this.#slot.totals);
    this.#slot.seal();
    try {
      writeSync(this.#file, bytes, 0, bytes.length, (sequence % 2) * SECTOR); // COUNTER-3
      this.#isSynced = false;
    } catch {
      // COUNTER-4
    }
  }

  sync(): void {
    if (this.#isSynced) return;
    fdatasyncSync(this.#file);
    this.#isSynced = true;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** A place in the journal's life, and what it held there. */
export type Counted = { position: number; revision: number; totals: JournalTotals };

const MAGIC = 0x45_56_43_31;
/** Each slot has a sector of its own. */
const SECTOR = 512;
const MAGIC_AT = 0;
const SEQUENCE_AT = 1;
const POSITION_AT = 2;
const REVISION_AT = 3;
const TOTALS_AT = 4;
const SUM_AT = TOTALS_AT + JournalTotals.LENGTH;

/** Numbers of eight bytes, the checksum last. */
class Slot {
  static readonly BYTES = (SUM_AT + 1) * 8;
  readonly bytes = Buffer.alloc(Slot.BYTES);
  readonly numbers = new Float64Array(this.bytes.buffer, this.bytes.byteOffset, SUM_AT + 1);
  readonly totals = this.numbers.subarray(TOTALS_AT, SUM_AT);
  readonly #summed = this.bytes.subarray(0, SUM_AT * 8);

  seal(): void {
    this.numbers[SUM_AT] = crc32(this.#summed);
  }

  isWhole(): boolean {
    return this.numbers[MAGIC_AT] === MAGIC && this.numbers[SUM_AT] === crc32(this.#summed);
  }
}

function newestSlot(path: string): Slot | null {
  if (!existsSync(path)) return null;
  const content = readFileSync(path);
  let newest: Slot | null = null;
  for (const at of [0, SECTOR]) {
    const slot = new Slot();
    // The file may be cut, or empty.
    slot.bytes.set(content.subarray(at, at + Slot.BYTES));
    if (slot.isWhole() && (slot.numbers[SEQUENCE_AT] ?? 0) > (newest?.numbers[SEQUENCE_AT] ?? 0)) newest = slot;
  }
  return newest;
}
