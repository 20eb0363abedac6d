import { isObject, type JsonValue } from "../domain/json.ts";

/** What a person said: guidance is a plain string, or an object whose `text`, `answer` or another named field holds it. */
export function guidanceText(guidance: JsonValue, ...fields: string[]): string | null {
  if (typeof guidance === "string") return guidance;
  if (!isObject(guidance)) return null;
  for (const field of [...fields, "text", "answer"]) {
    const value = guidance[field];
    if (typeof value === "string") return value;
  }
  return null;
}
