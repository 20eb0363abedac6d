/** A text as search compares it: lower case, without diacritics, in any script (é is e, ё is е). */
export const folded = (text: string): string => text.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();

/** The words of a text as search compares them. */
export const words = (text: string): string[] => folded(text).match(/[\p{L}\p{N}]+/gu) ?? [];
