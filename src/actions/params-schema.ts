import { z } from "zod";
import { isObject, type JsonObject, type JsonValue } from "../domain/json.ts";
import { unknownWords } from "../domain/nearest-word.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";

const schemas = new WeakMap<VersionedMoniker, JsonObject>();

/** A moniker's params as JSON Schema, cached. */
export function paramsSchemaOf(moniker: VersionedMoniker): JsonObject {
  const schema =
    schemas.get(moniker) ??
    moniker.params_schema ??
    (z.toJSONSchema(moniker.params, { io: "input", unrepresentable: "any" }) as JsonObject);
  schemas.set(moniker, schema);
  return schema;
}

/** The error text for params that the moniker does not know, with suggestions; null if all are names or it accepts any. */
export function unknownParams(moniker: VersionedMoniker, params: JsonObject): string | null {
  const schema = paramsSchemaOf(moniker);
  const names = namesIn(schema, schema, 0);
  if (names === null || names === "any") return null;
  const unknown = Object.keys(params).filter((name) => !names.has(name));
  if (unknown.length === 0) return null;
  return unknownWords(unknown, `a parameter of ${moniker.name}`, [...names]);
}

/** Bounds the recursion over references. */
const DEEPEST = 20;

/** The properties that a schema names; `any` if it accepts others too, null if it says nothing about them. */
function namesIn(schema: JsonValue | undefined, root: JsonObject, depth: number): Set<string> | "any" | null {
  if (!isObject(schema) || depth > DEEPEST) return null;
  const { $ref, properties, additionalProperties, patternProperties, anyOf, oneOf, allOf } = schema;
  if (patternProperties !== undefined || (additionalProperties ?? false) !== false) return "any";
  const own = isObject(properties)
    ? new Set(Object.keys(properties))
    : additionalProperties === false
      ? new Set<string>()
      : null;
  const others = [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const all = [own, ...others.map((other) => namesIn(other, root, depth + 1))];
  if (typeof $ref === "string") all.push(namesIn(lookUp(root, $ref), root, depth + 1) ?? "any");
  if (all.includes("any")) return "any";
  const named = all.filter((entry) => entry instanceof Set);
  return named.length === 0 ? null : new Set(named.flatMap((entry) => [...entry]));
}

function lookUp(root: JsonObject, reference: string): JsonValue | undefined {
  if (!reference.startsWith("#")) return undefined;
  const parts = reference.split("/").slice(1);
  return parts.reduce<JsonValue | undefined>((value, part) => (isObject(value) ? value[part] : undefined), root);
}
