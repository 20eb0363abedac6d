/**
 * A text as search compares it: lower case, without diacritics, in any script (é is e, ё is е).
 *
 * Marks are left out before the text is decomposed as well: decomposing puts a run of marks in order, in quadratic time.
 */
export const folded = (text: string): string => withoutMarks(decomposed(withoutMarks(text))).toLowerCase();

// A pattern that takes a run of any length keeps a stack as long as the run, and that overflows.
const withoutMarks = (text: string): string => text.replaceAll(/\p{M}{1,1000}/gu, "");

/** The one letter that is a phrase, of 18 letters where the next longest has 8: a text full of it would become six times as large. */
const PHRASE = "\ufdfa";
/** No character, and not changed by decomposing: stands for the phrase meanwhile. */
const STAND_IN = "\ufdd0";

/** The phrase stays the letter that it is. */
const decomposed = (text: string): string =>
  text.includes(PHRASE)
    ? text.replaceAll(PHRASE, STAND_IN).normalize("NFKD").replaceAll(STAND_IN, PHRASE)
    : text.normalize("NFKD");

/**
 * The words of a text as search compares them. Plain ASCII has nothing to fold but its case, and is found faster. What is longer
 * than any word is several: see `withoutMarks`.
 */
export const words = (text: string): string[] =>
  (ASCII.test(text) ? text.toLowerCase().match(/[a-z0-9]{1,1000}/g) : folded(text).match(/[\p{L}\p{N}]{1,1000}/gu)) ??
  [];

// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
const ASCII = /^[\0-\x7f]*$/;
