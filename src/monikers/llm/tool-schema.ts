import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";

/** The most objects a schema may have after its references are inlined. */
const MOST_OBJECTS = 5000;
/** Keywords without meaning for values, which some provider refuses. */
const DROPPED: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "examples",
]);
/** Keywords not allowed at the top of a schema, or rebuilt there. */
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
 * A tool's input schema in a form every provider accepts: an object at the top, without references, unions or negations there,
 * and without keywords only schema tools read. It may allow more than the original; the tool itself checks its input.
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

/** The target of references, the ones being followed, and the remaining size. */
type Inlining = { root: JsonObject; following: readonly string[]; budget: { left: number } };

/** Inlines every reference. A recursive one allows anything. */
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
  const keywords = Object.entries(rest).filter(([key]) => !DROPPED.has(key));
  return Object.fromEntries(keywords.map(([key, item]) => [key, inlineKeyword(key, item, inlining)]));
}

/**
 * Below `properties` a key is a property name, whatever keyword it looks like. Some providers do not support the schemas `true`
 * and `false`.
 */
function inlineKeyword(key: string, value: JsonValue, inlining: Inlining): JsonValue {
  if (key !== "properties" || !isObject(value)) return inline(value, inlining);
  return Object.fromEntries(
    Object.entries(value).map(([name, schema]) => [name, isObject(schema) ? inline(schema, inlining) : {}]),
  );
}

function resolve(reference: string, root: JsonObject): JsonObject | null {
  if (!reference.startsWith("#")) return null;
  let target: JsonValue | undefined = root;
  for (const key of reference.slice(1).split("/").filter(Boolean)) {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
    target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined;
  }
  return isObject(target) ? target : null;
}
