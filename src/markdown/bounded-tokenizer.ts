import { Tokenizer, type Tokens } from "marked";
import { listCost } from "./lexing-costs.ts";
import type { WorkBudget } from "./work-budget.ts";

/** The deepest nesting of quotes that is rendered. */
export const MOST_QUOTES = 10;

/**
 * Marked's tokenizer with bounds where it rescans text outside its lexer: in quotes, lists and tables. HTML tags are text, so
 * that `Array<T>` and `<thinking>` show as written.
 */
export class BoundedTokenizer extends Tokenizer {
  readonly #budget: WorkBudget;

  constructor(budget: WorkBudget) {
    super();
    this.#budget = budget;
  }

  override blockquote(src: string): Tokens.Blockquote | undefined {
    return quotesBefore(src) > MOST_QUOTES ? undefined : super.blockquote(src);
  }

  override list(src: string): Tokens.List | undefined {
    if (!this.rules.block.list.test(src)) return undefined;
    this.#budget.spend(listCost(src));
    return super.list(src);
  }

  override table(src: string): Tokens.Table | undefined {
    if (!hasTableRuler(src)) return undefined;
    this.#budget.spend(src.length / 2);
    return super.table(src);
  }

  override html(): undefined {}

  override tag(): undefined {}
}

function quotesBefore(line: string): number {
  let quotes = 0;
  for (const character of line)
    if (character === ">") quotes += 1;
    else if (character !== " " && character !== "\t") break;
  return quotes;
}

/** Whether the second line may separate a table's headings from its rows: if so, Marked scans everything after it. */
function hasTableRuler(src: string): boolean {
  const headings = src.indexOf("\n") + 1;
  if (headings === 0) return false;
  for (let index = headings; index < src.length && src[index] !== "\n"; index++)
    if (!" \t|:-".includes(src[index] as string)) return false;
  return true;
}
