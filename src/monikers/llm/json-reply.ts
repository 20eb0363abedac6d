import { isObject, type JsonObject } from "../../domain/json.ts";

/** The JSON object in a model's reply: alone, in a code fence, or after thoughts and remarks. Null where there is none. */
export function objectIn(reply: string): JsonObject | null {
  const text = reply.replace(/<think>[\s\S]*?<\/think>/g, "").trim();
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n?```/.exec(text)?.[1];
  const first = text.indexOf("{");
  const outermost = first < 0 ? undefined : text.slice(first, text.lastIndexOf("}") + 1);
  for (const candidate of [text, fenced, outermost]) {
    const parsed = candidate === undefined ? null : parse(candidate);
    if (parsed) return parsed;
  }
  return null;
}

/** Exact where it is JSON; otherwise the usual slips of models are mended: trailing commas, single quotes, bare newlines. */
function parse(text: string): JsonObject | null {
  for (const candidate of [text, mend(text)]) {
    try {
      const value: unknown = JSON.parse(candidate);
      if (isObject(value)) return value;
    } catch {
      // The next candidate may do.
    }
  }
  return null;
}

const mend = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? "")
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) => string.replaceAll("\n", "\\n").replaceAll("\t", "\\t"));
