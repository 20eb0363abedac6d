import { StringDecoder } from "node:string_decoder";

const LONGEST_LINE = 2000;

/** Splits a byte stream into lines for the log; long lines are truncated. */
export class LineReader {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  #line = "";
  #isCut = false;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  read(chunk: Buffer): void {
    const pieces = this.#decoder.write(chunk).split("\n");
    for (const [at, piece] of pieces.entries()) {
      if (at > 0) this.#end();
      const room = LONGEST_LINE - this.#line.length;
      this.#line += piece.slice(0, room);
      this.#isCut ||= piece.length > room;
    }
  }

  #end(): void {
    const line = this.#line.trimEnd();
    if (line !== "") this.#onLine(this.#isCut ? `${line}…` : line);
    this.#line = "";
    this.#isCut = false;
  }
}
