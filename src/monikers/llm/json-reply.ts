import { isObject, type JsonObject } from "../../domain/json.ts";

const THOUGHTS = { begin: "<think>", end: "</think>" } as const;

/** The JSON object in a model's reply: alone, in a code fence, or among remarks. Null where there is none. */
export function objectIn(reply: string): JsonObject | null {
  const text = reply.trim();
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n?```/.exec(text)?.[1];
  const first = text.indexOf("{");
  const outermost = first < 0 ? undefined : text.slice(first, text.lastIndexOf("}") + 1);
  const candidates = [...new Set([text, fenced, outermost])].filter((candidate) => candidate !== undefined);
  // Exact where it is JSON; mending looks at every character and is for the others.
  for (const read of [parse, (candidate: string) => parse(mend(candidate))])
    for (const candidate of candidates) {
      const object = read(candidate);
      if (object) return object;
    }
  return null;
}

/** Models that think aloud do so before they answer; some begin without saying so. */
export function withoutThoughts(reply: string): string {
  if (/^\s*(?:\{|```)/.test(reply)) return reply;
  const end = reply.indexOf(THOUGHTS.end);
  if (end >= 0) return reply.slice(end + THOUGHTS.end.length);
  return reply.trimStart().startsWith(THOUGHTS.begin) ? "" : reply;
}

/** Where the answer begins in a reply that still grows; null while it cannot be told, or is all thoughts. */
export function startOfAnswer(reply: string): number | null {
  const begun = reply.trimStart();
  if (!begun.startsWith(THOUGHTS.begin)) return THOUGHTS.begin.startsWith(begun) ? null : 0;
  const end = reply.indexOf(THOUGHTS.end);
  return end < 0 ? null : end + THOUGHTS.end.length;
}

function parse(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The usual slips of models: trailing commas, bare newlines and tabs in strings. */
const mend = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? "")
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) => string.replaceAll("\n", "\\n").replaceAll("\t", "\\t"));
