import { z } from "zod";

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };

/** Any JSON value. Its input was parsed from JSON text, so there is nothing left to check. */
export const jsonSchema: z.ZodType<JsonValue> = z.unknown() as never;
export const jsonObjectSchema = z.record(z.string(), jsonSchema);

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** For text from a file or a database column: text that is not JSON is returned as a string. */
export function parseDefensively(text: string | null): JsonValue {
  if (text === null) return null;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** A deep copy, many times faster than `structuredClone`. */
export function copyJson<Value extends JsonValue>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson) as Value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setOwn(copy, key, copyJson(value[key] as JsonValue));
  return copy as Value;
}

/** Sets a field of any name; plain assignment to `__proto__` would set the prototype instead. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key === "__proto__") Object.defineProperty(object, key, { ...OWN, value });
  else object[key] = value;
}
const OWN = { writable: true, enumerable: true, configurable: true };
