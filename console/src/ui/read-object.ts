import type { JsonSchema } from "../data/queries.ts";
import { hasFallback, kindOf, valueIn } from "./field-value.ts";

type Read = { value: Record<string, unknown>; problems: Map<string, string> };

export const REQUIRED = "This is required.";

/** The object that a form of `SchemaFields` holds. Fields left empty are omitted. */
export function readObject(form: FormData, { properties = {}, required = [] }: JsonSchema, prefix = ""): Read {
  const problems = new Map<string, string>();
  const value: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(properties)) {
    const field = `${prefix}${name}`;
    try {
      const filled = valueIn(form, field, schema);
      if (filled !== undefined) value[name] = filled;
      else if (!required.includes(name) || hasFallback(schema)) continue;
      // Choosing none is an answer unless `minItems` forbids it.
      else if (kindOf(schema) === "choices" && !schema.minItems) value[name] = [];
      else problems.set(field, REQUIRED);
    } catch {
      problems.set(field, "This is not JSON.");
    }
  }
  return { value, problems };
}
