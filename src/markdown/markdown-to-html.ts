import { type MarkedOptions, Parser } from "marked";
import { BoundedLexer } from "./bounded-lexer.ts";

/** Longer texts are not formatted, in characters. */
const LONGEST = 100_000;
const OPTIONS: MarkedOptions = { gfm: true, breaks: true };

/**
 * Renders untrusted Markdown as HTML, which must be sanitized before it is shown. Null if the text should be shown as it is: it
 * is too long, or Marked fails on it. Never throws, and takes at most some tens of milliseconds.
 */
export function markdownToHtml(markdown: string): string | null {
  if (markdown.length > LONGEST) return null;
  try {
    return Parser.parse(new BoundedLexer({ ...OPTIONS }).lex(markdown), { ...OPTIONS });
  } catch {
    return null;
  }
}
