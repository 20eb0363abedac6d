import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { JournalTotals } from "./journal-totals.ts";

/**
 * How far the journal was written and what it then held, kept apart from it: SQLite takes a log that is cut, damaged or
 * missing for a shorter one, and what was acknowledged would be gone without a word.
 *
 * N1  The position of a commit is written once the commit is on disk, so it is never ahead of the journal. A start whose
 *     journal ends before it has lost commits.
 * N2  The totals are those at that very position. Where rows change and the position does not, they are taken back before,
 *     durably, and written again after. So totals that stand beside the journal's position are true.
 * N3  It is written in turns to two places, each with its checksum: one that is torn or damaged leaves the other, which tells
 *     less.
 *
 * It is not synced with every commit. After a loss of power it may be behind, which only means that less is noticed.
 */
const MAGIC = 0x45_56_43_31;
/** Each place has a sector of its own. */
const SECTOR = 512;
const SLOT = 256;
const TOTALS_AT = 32;

export class CommitCounter {
  readonly #file: number;
  readonly #slot = Buffer.alloc(SLOT);
  #sequence: number;
  #isSynced = true;

  constructor(path: string) {
    this.#sequence = CommitCounter.read(path)?.sequence ?? 0;
    this.#file = openSync(path, existsSync(path) ? "r+" : "w+", 0o600);
    this.#slot.writeUInt32LE(MAGIC, 0);
  }

  /** Null where nothing can be read. */
  static read(path: string): { sequence: number; position: number; totals: JournalTotals | null } | null {
    if (!existsSync(path)) return null;
    const content = readFileSync(path);
    const whole = [0, SECTOR]
      .map((at) => content.subarray(at, at + SLOT))
      .filter((slot) => slot.length === SLOT && crc32(slot.subarray(0, SLOT - 4)) === slot.readUInt32LE(SLOT - 4))
      .filter((slot) => slot.readUInt32LE(0) === MAGIC)
      .sort((a, b) => b.readDoubleLE(8) - a.readDoubleLE(8));
    const [last] = whole;
    if (!last) return null;
    const totals = last.readDoubleLE(24) === 1 ? JournalTotals.read(last, TOTALS_AT) : null;
    return { sequence: last.readDoubleLE(8), position: last.readDoubleLE(16), totals };
  }

  /** N1, N2. */
  record(position: number, totals: JournalTotals | null): void {
    const slot = this.#slot;
    this.#sequence += 1;
    slot.writeDoubleLE(this.#sequence, 8);
    slot.writeDoubleLE(position, 16);
    slot.writeDoubleLE(totals ? 1 : 0, 24);
    totals?.write(slot, TOTALS_AT);
    slot.writeUInt32LE(crc32(slot.subarray(0, SLOT - 4)), SLOT - 4);
    writeSync(this.#file, slot, 0, SLOT, (this.#sequence % 2) * SECTOR);
    this.#isSynced = false;
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
