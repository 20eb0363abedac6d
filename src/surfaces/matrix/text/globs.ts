/** Whether a user id fits one of the patterns. */
export type Globs = (user_id: string) => boolean;

/** Patterns separated by commas or spaces; `*` stands for any characters, `?` for one. No pattern fits nobody. */
export function globs(patterns: string): Globs {
  const expressions = patterns
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(expression);
  return (user_id) => expressions.some((pattern) => pattern.test(user_id));
}

function expression(glob: string): RegExp {
  const escaped = glob.replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`, "su");
}
