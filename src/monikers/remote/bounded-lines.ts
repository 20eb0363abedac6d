import { isUtf8 } from "node:buffer";

/** The longest line in bytes. A frame with the largest storable state fits. */
const LONGEST_LINE = 32 * 1024 * 1024;
/** The most bytes in unfinished lines of one worker. */
const MOST_BUFFERED = 256 * 1024 * 1024;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Bytes waiting for the end of their line, over all answers of one worker. */
export type Buffered = { bytes: number };

/** Why bytes cannot be split into lines. */
export class LinesError extends Error {
  /** Caused partly by other answers, so the same bytes may succeed another time. */
  readonly is_shared: boolean;
  constructor(message: string, is_shared = false) {
    super(message);
    this.is_shared = is_shared;
  }
}

/**
 * Splits bytes into lines of text.
 *
 * LINES-1  Neither a line nor all unfinished lines of a worker together exceed their memory limit.
 * LINES-2  Bytes that are not UTF-8 are an error; they do not become stored replacement characters.
 */
export class BoundedLines {
  readonly #buffered: Buffered;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  /** The lines that end in this chunk, without empty ones. */
  *push(chunk: Buffer): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#buffer(chunk.subarray(start, end));
      start = end + 1;
      const line = this.#take();
      if (line !== "") yield line;
    }
    this.#buffer(chunk.subarray(start));
  }

  /** What follows the last newline. */
  end(): string {
    return this.#take();
  }

  /** Frees the buffer; nothing more is pushed. */
  drop(): void {
    this.#buffered.bytes -= this.#bytes;
    this.#bytes = 0;
    this.#pieces = [];
  }

  /** LINES-1. */
  #buffer(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.#bytes + piece.length > LONGEST_LINE)
      throw new LinesError(`sent a line of more than ${LONGEST_LINE} bytes`);
    if (this.#buffered.bytes + piece.length > MOST_BUFFERED)
      throw new LinesError(`sent unfinished lines of more than ${MOST_BUFFERED} bytes at once`, true);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    this.#buffered.bytes += piece.length;
  }

  #take(): string {
    const line = this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces);
    this.drop();
    if (!isUtf8(line)) throw new LinesError("sent a line that is not UTF-8"); // LINES-2
    return line.toString("utf8", 0, line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length);
  }
}
