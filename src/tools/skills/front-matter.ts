/** The fields between two `---` lines at the start of a text; null if there are none. */
export function frontMatter(text: string): Record<string, string> | null {
  const match = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  return match ? fieldsOf((match[1] ?? "").split(/\r?\n/)) : null;
}

const FIELD = /^([\w-]+):(?:[ \t]+(.*))?$/;

/** The part of YAML that such fields use: plain and quoted values on one line, and indented blocks. Anything else is ignored. */
function fieldsOf(lines: string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let at = 0; at < lines.length; at++) {
    const [, key, value = ""] = FIELD.exec(lines[at] ?? "") ?? [];
    if (key === undefined) continue;
    const block: string[] = [];
    while (/^(?:[ \t]+\S|\s*$)/.test(lines[at + 1] ?? "x")) block.push((lines[++at] ?? "").trim());
    fields[key] = textOf(value.trim(), block);
  }
  return fields;
}

function textOf(value: string, block: string[]): string {
  if (/^[|>][+-]?$/.test(value)) return block.join(value.startsWith("|") ? "\n" : " ").trim();
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value) ?? /^'((?:[^']|'')*)'$/.exec(value);
  if (quoted) return value.startsWith('"') ? unescaped(value) : (quoted[1] ?? "").replaceAll("''", "'");
  return [value, ...block].join(" ").trim();
}

/** A quoted YAML value is nearly always valid JSON. */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}
