import { Lexer, type MarkedOptions, type Token, type TokensList } from "marked";
import { BoundedTokenizer, MOST_QUOTES } from "./bounded-tokenizer.ts";
import { inlineCost } from "./lexing-costs.ts";
import { WorkBudget } from "./work-budget.ts";

/** The deepest nesting of quotes, lists, emphasis and links that is rendered. */
const DEEPEST = MOST_QUOTES + 2;
/** Some tens of milliseconds. */
const MOST_WORK = 4_000_000;

/**
 * Marked's lexer for untrusted text. Marked recurses at every level of nesting and some of its rules take quadratic time, so
 * that a few kilobytes overflow the stack or block a process for seconds.
 *
 * MARKDOWN-1  Nesting is bounded; deeper levels are shown as plain text.
 * MARKDOWN-2  Work is bounded: a paragraph that is too expensive is shown as plain text; if that does not help, it throws.
 */
export class BoundedLexer extends Lexer {
  readonly #budget: WorkBudget;
  #depth = 0;

  constructor(options: MarkedOptions) {
    const budget = new WorkBudget(MOST_WORK);
    super({ ...options, tokenizer: new BoundedTokenizer(budget) });
    this.#budget = budget;
  }

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped = false): Token[] {
    if (this.#allows(src.length)) return this.#deeper(() => super.blockTokens(src, tokens, lastParagraphClipped));
    tokens.push({ type: "text", raw: src, text: src, tokens: asPlainText(src, []) });
    return tokens;
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (this.#allows(inlineCost(src))) return this.#deeper(() => super.inlineTokens(src, tokens));
    return asPlainText(src, tokens);
  }

  /** MARKDOWN-1, MARKDOWN-2 */
  #allows(cost: number): boolean {
    return this.#depth < DEEPEST && this.#budget.trySpend(cost);
  }

  #deeper(work: () => Token[]): Token[] {
    this.#depth += 1;
    try {
      return work();
    } finally {
      this.#depth -= 1;
    }
  }
}

function asPlainText(src: string, tokens: Token[]): Token[] {
  for (const [index, line] of src.split("\n").entries()) {
    if (index > 0) tokens.push({ type: "br", raw: "\n" });
    tokens.push({ type: "text", raw: line, text: line, escaped: false });
  }
  return tokens;
}
