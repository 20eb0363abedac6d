const NEWLINE = 0x0a;

/** Splits bytes into lines in linear time, even if a line arrives in many pieces. */
export class MessageLines {
  readonly #longest: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** The lines that end in this piece. Throws if a line is too long. */
  *read(piece: Buffer): Generator<string, void, undefined> {
    let rest = piece;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#add(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      yield this.#take();
    }
    this.#add(rest);
  }

  #add(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#length > this.#longest) throw new Error(`it sent a message of more than ${this.#longest} bytes`);
    if (piece.length > 0) this.#pieces.push(piece);
  }

  #take(): string {
    const line = Buffer.concat(this.#pieces).toString("utf8");
    this.#pieces = [];
    this.#length = 0;
    return line.trim();
  }
}
