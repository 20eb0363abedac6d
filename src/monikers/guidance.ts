import { isObject, type JsonValue } from "../domain/json.ts";

/** The text of a piece of guidance: a plain string, or the field `text`, `answer` or another named one of an object. */
export function guidanceText(guidance: JsonValue, ...fields: string[]): string | null {
  if (typeof guidance === "string") return guidance;
  if (!isObject(guidance)) return null;
  for (const field of [...fields, "text", "answer"]) {
    const value = guidance[field];
    if (typeof value === "string") return value;
  }
  return null;
}
