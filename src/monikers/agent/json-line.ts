/** A value on a line of its own. JSON leaves two separators of lines as they are. */
export const jsonLine = (value: object): string =>
  JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
