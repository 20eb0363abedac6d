/**
 * Normalizes a text for search: lower case, without diacritics, in any script (é becomes e, ё becomes е).
 *
 * Marks are removed before decomposing as well: decomposing sorts a run of marks in quadratic time.
 */
export const folded = (text: string): string => withoutMarks(decomposed(withoutMarks(text))).toLowerCase();

// Bounded: an unbounded quantifier needs a stack as deep as the run and overflows.
const withoutMarks = (text: string): string => text.replaceAll(/\p{M}{1,1000}/gu, "");

/** A ligature that decomposes to 18 letters (the next longest to 8): a text full of it would grow sixfold. */
const LIGATURE = "\ufdfa";
/** A noncharacter that decomposing leaves alone; a placeholder for the ligature. */
const PLACEHOLDER = "\ufdd0";

/** Keeps the ligature as it is. */
const decomposed = (text: string): string =>
  text.includes(LIGATURE)
    ? text.replaceAll(LIGATURE, PLACEHOLDER).normalize("NFKD").replaceAll(PLACEHOLDER, LIGATURE)
    : text.normalize("NFKD");

/**
 * Splits a text into normalized words. Plain ASCII only needs lower case and takes a faster path. A run longer than any word is
 * split: see `withoutMarks`.
 */
export const words = (text: string): string[] =>
  (ASCII.test(text) ? text.toLowerCase().match(/[a-z0-9]{1,1000}/g) : folded(text).match(/[\p{L}\p{N}]{1,1000}/gu)) ??
  [];

// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
const ASCII = /^[\0-\x7f]*$/;
