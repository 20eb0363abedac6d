import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";

/** Objects that a schema may have once its references are replaced. */
const MOST_OBJECTS = 5000;
/** What says nothing about a value, and some provider refuses. */
const DROPPED: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "examples",
]);
/** What the top of a schema may not have, or gets anew. */
const REPLACED: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "not",
  "enum",
  "const",
  "if",
  "then",
  "else",
]);

/**
 * A tool's input schema as every provider takes it: an object at the top, without references, unions or negations there, without
 * the keywords that only tools for schemas read. It may allow more than the original; the tool itself checks what it is given.
 */
export function acceptableSchema(schema: JsonObject): JsonObject {
  const inlined = inline(schema, { root: schema, following: [], budget: { left: MOST_OBJECTS } });
  const { anyOf, oneOf, allOf, ...rest } = isObject(inlined) ? inlined : {};
  const alternatives = [anyOf, oneOf].flatMap((branches) =>
    Array.isArray(branches) ? [branches.filter(isObject)] : [],
  );
  const parts = Array.isArray(allOf) ? allOf.filter(isObject) : [];
  const properties = Object.assign(
    {},
    ...[...alternatives.flat(), ...parts, rest].map(({ properties: own }) => (isObject(own) ? own : {})),
  ) as JsonObject;
  const required = new Set([
    ...requiredOf(rest),
    ...parts.flatMap(requiredOf),
    ...alternatives.flatMap((branches) => inAll(branches.map(requiredOf))),
  ]);
  const others = Object.entries(rest).filter(([key]) => !REPLACED.has(key));
  const names = [...required].filter((name) => Object.hasOwn(properties, name));
  return {
    ...Object.fromEntries(others),
    type: "object",
    properties,
    ...(names.length > 0 ? { required: names } : {}),
  };
}

const requiredOf = ({ required }: JsonObject): string[] =>
  Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];

const inAll = ([first = [], ...others]: string[][]): string[] =>
  first.filter((name) => others.every((names) => names.includes(name)));

/** Where references lead, which of them are being followed, and how much may still be written. */
type Inlining = { root: JsonObject; following: readonly string[]; budget: { left: number } };

/** The value with every reference replaced by what it refers to. One that leads back to itself may be anything. */
function inline(value: JsonValue, inlining: Inlining): JsonValue {
  if (Array.isArray(value)) return value.map((item) => inline(item, inlining));
  if (!isObject(value)) return value;
  inlining.budget.left -= 1;
  const { $ref, ...rest } = value;
  if (typeof $ref === "string") {
    const { root, following, budget } = inlining;
    const target = following.includes($ref) || budget.left < 0 ? null : resolve($ref, root);
    return inline({ ...target, ...rest }, { ...inlining, following: [...following, $ref] });
  }
  const kept = Object.entries(rest).filter(([key]) => !DROPPED.has(key));
  return Object.fromEntries(kept.map(([key, item]) => [key, inlineKeyword(key, item, inlining)]));
}

/** Below `properties` a key is a name, whatever keyword it looks like. A schema that is `true` or `false` some providers do not know. */
function inlineKeyword(key: string, value: JsonValue, inlining: Inlining): JsonValue {
  if (key !== "properties" || !isObject(value)) return inline(value, inlining);
  return Object.fromEntries(
    Object.entries(value).map(([name, schema]) => [name, isObject(schema) ? inline(schema, inlining) : {}]),
  );
}

function resolve(reference: string, root: JsonObject): JsonObject | null {
  if (!reference.startsWith("#")) return null;
  let found: JsonValue | undefined = root;
  for (const key of reference.slice(1).split("/").filter(Boolean)) {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return isObject(found) ? found : null;
}
