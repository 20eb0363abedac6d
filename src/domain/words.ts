/**
 * A text as search compares it: lower case, without diacritics, in any script (é is e, ё is е).
 *
 * Marks are left out before the text is decomposed as well: decomposing puts a run of marks in order, in quadratic time.
 */
export const folded = (text: string): string => withoutMarks(withoutMarks(text).normalize("NFKD")).toLowerCase();

const withoutMarks = (text: string): string => text.replaceAll(/\p{M}+/gu, "");

/** The words of a text as search compares them. Plain ASCII has nothing to fold but its case, and is found faster. */
export const words = (text: string): string[] =>
  (ASCII.test(text) ? text.toLowerCase().match(/[a-z0-9]+/g) : folded(text).match(/[\p{L}\p{N}]+/gu)) ?? [];

// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
const ASCII = /^[\0-\x7f]*$/;
