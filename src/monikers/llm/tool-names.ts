import { createHash } from "node:crypto";

/** What every provider takes for the name of a function. */
const SAFE = /^[a-zA-Z][a-zA-Z0-9_-]*$/;
const LONGEST = 64;

/**
 * A tool's name as providers take it. It depends on the name alone, so that it is the same in every turn of a conversation, and two
 * names never become one: a slash is two underscores, and a name for which that would not do gets a hash at its end.
 */
export function safeToolName(name: string): string {
  const plain = name.replaceAll("/", "__");
  if (!name.includes("__") && plain.length <= LONGEST && SAFE.test(plain)) return plain;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 10);
  const letters = plain.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, LONGEST - hash.length - 3);
  return `${/^[a-zA-Z]/.test(letters) ? "" : "t_"}${letters}_${hash}`;
}

/** Finds the tool that a model means by a name. A name that none of them has is handed on as the model wrote it. */
export function toolNamer(names: Iterable<string>): (written: string) => string {
  const known = new Map<string, string>();
  for (const name of names) known.set(safeToolName(name), name);
  return (written) => known.get(written) ?? (SAFE.test(written) ? written.replace("__", "/") : written);
}
