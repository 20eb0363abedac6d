/** A value as one line. JSON does not escape two of Unicode's line separators. */
export const jsonLine = (value: object): string =>
  JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
