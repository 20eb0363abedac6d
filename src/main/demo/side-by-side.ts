/** Two columns of text with word wrap. */
export function sideBySide(left: readonly string[], right: readonly string[], width: number): string[] {
  const rows = Math.max(left.length, right.length);
  return Array.from({ length: rows }, (_, row) => {
    const [one, other] = [wrapped(left[row] ?? "", width), wrapped(right[row] ?? "", width)];
    const lines = Math.max(one.length, other.length);
    return Array.from({ length: lines }, (__, line) =>
      `${(one[line] ?? "").padEnd(width)} │ ${other[line] ?? ""}`.trimEnd(),
    );
  }).flat();
}

/** Wraps a text at `width` characters; a longer word gets its own line. Continuation lines are indented. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && `${last} ${word}`.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(last === undefined ? word : `  ${word}`);
  }
  return lines;
}
