/**
 * Whether a step token fits a pattern: `*` stands for any characters of one part between slashes, `?` for one of them, `**` as
 * a part of its own for any number of parts.
 */
export const fitsGlob = (pattern: string, token: string): boolean =>
  fits(pattern.split("/"), token.split("/"), "**", (part, text) =>
    fits(Array.from(part), Array.from(text), "*", (sign, character) => sign === "?" || sign === character),
  );

/** A star takes as little as it can; where that does not do, only the last star takes more, so that nothing is tried twice. */
function fits(
  pattern: readonly string[],
  items: readonly string[],
  star: string,
  isFit: (sign: string, item: string) => boolean,
): boolean {
  let [at, here] = [0, 0];
  let last: { pattern: number; item: number } | null = null;
  while (at < items.length) {
    const sign = pattern[here];
    if (sign === star) {
      last = { pattern: here, item: at };
      here += 1;
    } else if (sign !== undefined && isFit(sign, items[at] as string)) {
      here += 1;
      at += 1;
    } else if (last !== null) {
      last.item += 1;
      at = last.item;
      here = last.pattern + 1;
    } else return false;
  }
  while (pattern[here] === star) here += 1;
  return here === pattern.length;
}
