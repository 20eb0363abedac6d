import { type MarkedOptions, Parser } from "marked";
import { BoundedLexer } from "./bounded-lexer.ts";

/** Characters of a text that is shown with its formatting. */
const LONGEST = 100_000;
const OPTIONS: MarkedOptions = { gfm: true, breaks: true };

/**
 * Markdown of anybody as HTML, which is not safe to show before it is sanitized. Null where the text is to be shown as it
 * is: it is too long, or Marked fails on it. It never throws, and takes no more than some tens of milliseconds.
 */
export function markdownToHtml(markdown: string): string | null {
  if (markdown.length > LONGEST) return null;
  try {
    return Parser.parse(new BoundedLexer({ ...OPTIONS }).lex(markdown), { ...OPTIONS });
  } catch {
    return null;
  }
}
