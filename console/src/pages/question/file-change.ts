export type FileChange = {
  path: string;
  /** Replaced text and its replacement. `before` is null where the call does not name the old text. */
  pieces: { before: string | null; after: string }[];
};

type Args = Readonly<Record<string, unknown>>;

const PATHS = ["path", "file_path", "filename", "file"];
const WHOLE = ["text", "content", "contents", "file_text"];
const PAIRS = [
  ["old_text", "new_text"],
  ["oldText", "newText"],
  ["old_string", "new_string"],
  ["old_str", "new_str"],
] as const;

/** What a call would change in a file, by the argument names that tools commonly use; null if it writes none. */
export function fileChangeOf(args: object): FileChange | null {
  const values = args as Args;
  const path = textAt(values, PATHS);
  if (path === undefined) return null;
  const edits = Array.isArray(values["edits"]) ? values["edits"] : [values];
  const replaced = edits.flatMap((edit: unknown) => replacementIn(edit) ?? []);
  if (replaced.length > 0) return { path, pieces: replaced };
  const text = textAt(values, WHOLE);
  return text === undefined ? null : { path, pieces: [{ before: null, after: text }] };
}

function replacementIn(edit: unknown): FileChange["pieces"][number] | null {
  if (typeof edit !== "object" || edit === null) return null;
  for (const [before, after] of PAIRS) {
    const [old, text] = [(edit as Args)[before], (edit as Args)[after]];
    if (typeof old === "string" && typeof text === "string") return { before: old, after: text };
  }
  return null;
}

function textAt(args: Args, names: readonly string[]): string | undefined {
  for (const name of names) if (typeof args[name] === "string") return args[name];
  return undefined;
}
