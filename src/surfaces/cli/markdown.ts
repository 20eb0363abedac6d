import { painter, printable } from "./output.ts";

const [GRAY, CYAN, BOLD, ITALIC] = [painter("gray"), painter("cyan"), painter("bold"), painter("italic")];

/**
 * Markdown for a terminal, styled line by line as it streams: a line is styled once it is complete, so that printed text never
 * changes. Code stays as it is.
 */
export class MarkdownLines {
  readonly #isStyled: boolean;
  /** Pieces of the unfinished line. */
  #rest: string[] = [];
  #inCode = false;

  /** Unstyled, as in a pipe, the text stays unchanged. */
  constructor(isStyled: boolean) {
    this.#isStyled = isStyled;
  }

  /** The part of the text that can be printed now. */
  push(piece: string): string {
    const [first = "", ...others] = printable(piece).split("\n");
    this.#rest.push(first);
    if (others.length === 0) return "";
    const lines = [this.#rest.join(""), ...others.slice(0, -1)];
    this.#rest = [others.at(-1) ?? ""];
    return lines.map((line) => `${this.#style(line)}\n`).join("");
  }

  /** The last, unfinished line. */
  end(): string {
    const rest = this.#rest.join("");
    this.#rest = [];
    return rest === "" ? "" : `${this.#style(rest)}\n`;
  }

  #style(line: string): string {
    if (!this.#isStyled || line === "") return line;
    if (line.startsWith("```")) {
      this.#inCode = !this.#inCode;
      return GRAY(line);
    }
    if (this.#inCode) return CYAN(line);
    if (/^#{1,6} /.test(line)) return BOLD(line);
    if (line.startsWith("> ")) return ITALIC(line);
    return line
      .replaceAll(/`([^`]+)`/g, (_, code: string) => CYAN(code))
      .replaceAll(/\*\*([^*]+)\*\*/g, (_, strong: string) => BOLD(strong));
  }
}
