/**
 * Whether a step token matches a pattern: `*` stands for any characters except a slash, `?` for one of them, and `**` between
 * slashes for any number of parts.
 */
export const matchesGlob = (pattern: string, token: string): boolean =>
  matches(pattern.split("/"), token.split("/"), "**", (part, text) =>
    matches(Array.from(part), Array.from(text), "*", (symbol, character) => symbol === "?" || symbol === character),
  );

/** A star matches as little as possible; on a mismatch only the last star takes more, so nothing is tried twice. */
function matches(
  pattern: readonly string[],
  items: readonly string[],
  star: string,
  matchesItem: (symbol: string, item: string) => boolean,
): boolean {
  let [at, here] = [0, 0];
  let last: { pattern: number; item: number } | null = null;
  while (at < items.length) {
    const symbol = pattern[here];
    if (symbol === star) {
      last = { pattern: here, item: at };
      here += 1;
    } else if (symbol !== undefined && matchesItem(symbol, items[at] as string)) {
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
