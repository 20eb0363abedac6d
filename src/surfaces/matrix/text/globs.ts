/** Whether a user id matches one of the patterns. */
export type Globs = (user_id: string) => boolean;

/** Patterns separated by commas or spaces; `*` matches any characters, `?` exactly one. An empty list matches nobody. */
export function globs(patterns: string): Globs {
  const all = patterns.split(/[\s,]+/).filter(Boolean);
  return (user_id) => all.some((pattern) => fits(pattern, user_id));
}

/** A star matches as little as possible; on a mismatch only the last star is extended, so the time stays linear in each. */
function fits(pattern: string, text: string): boolean {
  let [at, here] = [0, 0];
  let star: { pattern: number; text: number } | null = null;
  while (at < text.length)
    if (pattern[here] === "*") {
      star = { pattern: here, text: at };
      here += 1;
    } else if (pattern[here] === "?") {
      here += 1;
      at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
    } else if (pattern[here] === text[at]) {
      here += 1;
      at += 1;
    } else if (star !== null) {
      star.text += 1;
      at = star.text;
      here = star.pattern + 1;
    } else return false;
  while (pattern[here] === "*") here += 1;
  return here === pattern.length;
}
