export type ContextPrompt = { verb: "save" | "load" | "add"; path: string; reply: string };

/**
 * Parses the prompts with which chat surfaces save a conversation and load one, replacing or adding to the loaded background;
 * null for any other message.
 *
 * Anyone may send any message, so it is parsed left to right without backtracking: a regular expression would take quadratic
 * time on a long run of spaces.
 */
export function parseContextPrompt(message: string): ContextPrompt | null {
  const text = message.trim();
  return (
    parse(text, "save", "Summarize our conversation and save to ", "", "Reply only with:") ??
    parse(text, "load", "Load context from ", "and use it as background for our conversation.", "Reply:") ??
    parse(text, "add", "Load context from ", "and use it as additional background for our conversation.", "Reply:")
  );
}

function parse(
  text: string,
  verb: ContextPrompt["verb"],
  opening: string,
  purpose: string,
  label: string,
): ContextPrompt | null {
  if (!text.startsWith(opening)) return null;
  const afterOpening = text.slice(opening.length);
  const end = afterOpening.search(/\s/);
  if (end <= 0) return null;
  const afterPath = afterOpening.slice(end).trimStart();
  if (!afterPath.startsWith(purpose)) return null;
  const request = afterPath.slice(purpose.length).trimStart();
  const reply = request.startsWith(label) ? request.slice(label.length).trimStart() : "";
  if (reply === "") return null;
  const path = afterOpening.slice(0, end);
  return { verb, path: verb === "save" ? withoutFullStop(path) : path, reply };
}

const withoutFullStop = (path: string): string => (path.length > 1 && path.endsWith(".") ? path.slice(0, -1) : path);
