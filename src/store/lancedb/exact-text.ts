/**
 * Texts as files can hold them. Half of a surrogate pair is no character in UTF-8: a text with one is stored as JSON behind a mark and
 * comes back to the letter. So is a text that begins with the mark.
 */
const MARK = "\u0001";

export const toText = (text: string): string =>
  text.isWellFormed() && !text.startsWith(MARK) ? text : MARK + JSON.stringify(text);

export function fromText(stored: string): string {
  if (!stored.startsWith(MARK)) return stored;
  try {
    const text: unknown = JSON.parse(stored.slice(MARK.length));
    // What no text of ours looks like was stored before there was a mark.
    return typeof text === "string" && toText(text) === stored ? text : stored;
  } catch {
    return stored;
  }
}
