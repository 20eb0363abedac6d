import { createHash } from "node:crypto";

/** The function names every provider accepts. */
const SAFE = /^[a-zA-Z][a-zA-Z0-9_-]*$/;
const LONGEST = 64;

/**
 * A tool's name in a form providers accept. It depends on the name alone, so it is the same in every turn, and no two names
 * collide: a slash becomes two underscores, and a name for which that is not enough gets a hash appended.
 */
export function safeToolName(name: string): string {
  const plain = name.replaceAll("/", "__");
  if (!name.includes("__") && plain.length <= LONGEST && SAFE.test(plain)) return plain;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 10);
  const letters = plain.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, LONGEST - hash.length - 3);
  return `${/^[a-zA-Z]/.test(letters) ? "" : "t_"}${letters}_${hash}`;
}

/** Maps a name the model wrote back to the tool. An unknown name is passed on as written. */
export function toolNamer(names: Iterable<string>): (written: string) => string {
  const originals = new Map<string, string>();
  for (const name of names) originals.set(safeToolName(name), name);
  return (written) => originals.get(written) ?? (SAFE.test(written) ? written.replace("__", "/") : written);
}
