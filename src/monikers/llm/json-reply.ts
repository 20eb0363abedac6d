import { isObject, type JsonObject } from "../../domain/json.ts";

const THOUGHTS = { begin: "<think>", end: "</think>" } as const;

/** The JSON object in a model's reply: alone, in a code fence, or among remarks. Null if there is none. */
export function objectIn(reply: string): JsonObject | null {
  const text = reply.trim();
  const fenced = fencedIn(text);
  const first = text.indexOf("{");
  const outermost = first < 0 ? undefined : text.slice(first, text.lastIndexOf("}") + 1);
  const candidates = [...new Set([text, fenced, outermost])].filter((candidate) => candidate !== undefined);
  // Strict parsing first; repairing reads every character and is for the rest.
  const parseRepaired = (candidate: string): JsonObject | null => {
    const better = repair(candidate);
    return better === candidate ? null : parse(better);
  };
  for (const read of [parse, parseRepaired])
    for (const candidate of candidates) {
      const object = read(candidate);
      if (object) return object;
    }
  return null;
}

/** Removes the reasoning that some models write before the answer; some leave out its opening tag. */
export function withoutThoughts(reply: string): string {
  if (/^\s*(?:\{|```)/.test(reply)) return reply;
  const end = reply.indexOf(THOUGHTS.end);
  if (end >= 0) return reply.slice(end + THOUGHTS.end.length);
  return reply.trimStart().startsWith(THOUGHTS.begin) ? "" : reply;
}

/** Finds where the answer begins in a growing reply, reading each character once. */
export class AnswerStart {
  #spaces = 0;
  #searched = 0;

  /** Null while that is unknown, or while there is only reasoning. */
  update(reply: string): number | null {
    this.#spaces = endOfSpace(reply, this.#spaces);
    const begun = reply.slice(this.#spaces, this.#spaces + THOUGHTS.begin.length);
    if (begun !== THOUGHTS.begin) return THOUGHTS.begin.startsWith(begun) ? null : 0;
    const end = reply.indexOf(THOUGHTS.end, this.#searched);
    // Part of the end tag may have arrived.
    this.#searched = Math.max(0, reply.length - THOUGHTS.end.length);
    return end < 0 ? null : end + THOUGHTS.end.length;
  }
}

/** Passes on the answer of a growing reply, without the reasoning before it. */
export class AnswerFilter {
  readonly #start = new AnswerStart();
  #held = "";
  #place: "unknown" | "after thoughts" | "in the answer" = "unknown";

  /** The part of the answer that a piece of the reply adds. */
  push(piece: string): string {
    if (this.#place === "in the answer") return piece;
    this.#held += piece;
    if (this.#place === "unknown") {
      const at = this.#start.update(this.#held);
      if (at === null) return "";
      this.#held = this.#held.slice(at);
      this.#place = at === 0 ? "in the answer" : "after thoughts";
    }
    // Spaces after the reasoning belong to neither.
    const answer = this.#place === "after thoughts" ? this.#held.trimStart() : this.#held;
    if (answer !== "") this.#place = "in the answer";
    return answer;
  }

  /** Text that was held back and turned out not to be reasoning. */
  end(): string {
    return this.#place === "unknown" && !this.#held.trimStart().startsWith(THOUGHTS.begin) ? this.#held : "";
  }
}

function parse(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

const FENCE = "```";
const SPACE = new Set(Array.from(" \n\r\t", (space) => space.charCodeAt(0)));

/** The content of the first closed code fence. */
function fencedIn(text: string): string | undefined {
  const opening = text.indexOf(FENCE);
  const start = opening < 0 ? -1 : text.indexOf("\n", opening) + 1;
  if (start <= 0) return undefined;
  const label = text.slice(opening + FENCE.length, start).trim();
  const end = text.indexOf(FENCE, start);
  return end >= 0 && (label === "" || label === "json") ? text.slice(start, end) : undefined;
}

/** Repairs common mistakes of models: trailing commas, bare newlines and tabs in strings. */
function repair(text: string): string {
  const parts: string[] = [];
  let copied = 0;
  const replace = (at: number, by: string): void => {
    parts.push(text.slice(copied, at), by);
    copied = at + 1;
  };
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') inString = !inString;
    else if (inString && char === "\\") at += 1;
    else if (inString && char === "\n") replace(at, "\\n");
    else if (inString && char === "\t") replace(at, "\\t");
    else if (!inString && char === ",") {
      const next = endOfSpace(text, at + 1);
      if (text[next] === "}" || text[next] === "]") replace(at, "");
      at = next - 1;
    }
  }
  return `${parts.join("")}${text.slice(copied)}`;
}

function endOfSpace(text: string, start: number): number {
  let at = start;
  while (SPACE.has(text.charCodeAt(at))) at += 1;
  return at;
}
