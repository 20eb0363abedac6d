import { coloured, printable } from "./output.ts";

/**
 * Markdown for a terminal, line by line as it streams: a line is styled once it is whole, so that what was shown is never
 * taken back. Code stays as it is.
 */
export class MarkdownLines {
  readonly #isStyled: boolean;
  #rest = "";
  #inCode = false;

  /** Unstyled, as in a pipe, the text stays to the letter. */
  constructor(isStyled: boolean) {
    this.#isStyled = isStyled;
  }

  /** What can be shown of the text so far. */
  push(piece: string): string {
    const lines = (this.#rest + printable(piece)).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => `${this.#style(line)}\n`).join("");
  }

  /** The last line, which had no end. */
  end(): string {
    const rest = this.#rest;
    this.#rest = "";
    return rest === "" ? "" : `${this.#style(rest)}\n`;
  }

  #style(line: string): string {
    if (!this.#isStyled) return line;
    if (line.startsWith("```")) {
      this.#inCode = !this.#inCode;
      return coloured("gray", line);
    }
    if (this.#inCode) return coloured("cyan", line);
    if (/^#{1,6} /.test(line)) return coloured("bold", line);
    if (line.startsWith("> ")) return coloured("italic", line);
    return line
      .replaceAll(/`([^`]+)`/g, (_, code: string) => coloured("cyan", code))
      .replaceAll(/\*\*([^*]+)\*\*/g, (_, strong: string) => coloured("bold", strong));
  }
}
