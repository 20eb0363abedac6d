import { Lexer, type MarkedOptions, type Token, type TokensList } from "marked";
import { BoundedTokenizer, MOST_QUOTES } from "./bounded-tokenizer.ts";
import { inlineCost } from "./lexing-costs.ts";
import { WorkBudget } from "./work-budget.ts";

/** Quotes, lists, emphasis and links inside each other that are shown as such. */
const DEEPEST = MOST_QUOTES + 2;
/** Some tens of milliseconds. */
const MOST_WORK = 4_000_000;

/**
 * Marked's lexer for text that nobody vouches for. Marked recurses at every level of nesting and some of its rules take
 * quadratic time, so that a few kilobytes overflow the stack or hold a process for seconds.
 *
 * MARKDOWN-1  Nesting is bounded; what is deeper stands as written.
 * MARKDOWN-2  Work is bounded: a paragraph that is too much stands as written; where that does not help, it throws.
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
    tokens.push({ type: "text", raw: src, text: src, tokens: asWritten(src, []) });
    return tokens;
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (this.#allows(inlineCost(src))) return this.#deeper(() => super.inlineTokens(src, tokens));
    return asWritten(src, tokens);
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

function asWritten(src: string, tokens: Token[]): Token[] {
  for (const [index, line] of src.split("\n").entries()) {
    if (index > 0) tokens.push({ type: "br", raw: "\n" });
    tokens.push({ type: "text", raw: line, text: line, escaped: false });
  }
  return tokens;
}
