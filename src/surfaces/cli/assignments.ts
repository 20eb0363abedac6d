import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { CommandError } from "./client.ts";

/** Words of the form `key=value`; a value that is valid JSON is parsed, everything else is text. */
export const assignments = (words: readonly string[]): JsonObject => Object.fromEntries(words.map(assignment));

function assignment(text: string): [string, JsonValue] {
  const at = text.indexOf("=");
  if (at < 1) throw new CommandError(`${text} is not of the form key=value`, 2);
  const value = text.slice(at + 1);
  try {
    return [text.slice(0, at), JSON.parse(value) as JsonValue];
  } catch {
    return [text.slice(0, at), value];
  }
}
