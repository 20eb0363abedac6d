import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";

const HEADER = `// Made from the OpenAPI document by \`npm run generate:client-types\`. A test compares it with what the server describes.

`;
/** Clients of others use OpenAI's API, so it is left out. */
const OTHER_APIS = "/v1/";
const METHODS = ["get", "post", "put", "patch", "delete"];
const REFERENCE = "#/components/schemas/";

/** The type of "any JSON" depends on the direction: any value may be sent, JSON is received. */
type Direction = "sent" | "received";

/** TypeScript for the rows and calls of an OpenAPI 3.1 document, in the document's order. */
export function openApiTypes(document: JsonObject): string {
  const routes = Object.entries(objectIn(document, "paths")).flatMap(([path, methods]) =>
    path.startsWith(OTHER_APIS)
      ? []
      : METHODS.flatMap((method) => routeLines(path, method, (methods as JsonObject)[method])),
  );
  const calls = routes.join("\n");
  const schemas = objectIn(objectIn(document, "components"), "schemas");
  const rows = reachable(schemas, calls).map(
    (name) => `  ${name}: ${typeOf(schemas[name], name.endsWith("Input") ? "sent" : "received")};`,
  );
  return `${HEADER}export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** The rows that calls and events carry. */
export type Schemas = {
${rows.join("\n")}
};

/** Every call with what it takes and what it answers. */
export type Routes = {
${calls}
};
`;
}

function routeLines(path: string, method: string, route: JsonValue | undefined): string[] {
  if (!isObject(route)) return [];
  const answer = answerOf(objectIn(route, "responses"));
  if (answer === null) return [];
  const parameters = (route["parameters"] ?? []) as JsonObject[];
  const fields = [
    ...parameterField("path", parameters),
    ...parameterField("query", parameters),
    ...bodyField(route["requestBody"]),
    `answer: ${answer}`,
  ];
  const summary = typeof route["summary"] === "string" ? [`  /** ${route["summary"]} */`] : [];
  return [...summary, `  "${method.toUpperCase()} ${path}": { ${fields.join("; ")} };`];
}

function parameterField(place: string, parameters: JsonObject[]): string[] {
  const some = parameters.filter((parameter) => parameter["in"] === place);
  if (some.length === 0) return [];
  const isNeeded = some.some(({ required }) => required === true);
  const fields = some.map(
    ({ name, required, schema }) => `${key(name as string)}${required === true ? "" : "?"}: ${typeOf(schema, "sent")}`,
  );
  return [`${place}${isNeeded ? "" : "?"}: { ${fields.join("; ")} }`];
}

/** A body without required fields may be absent. */
function bodyField(body: JsonValue | undefined): string[] {
  const schema = isObject(body) ? jsonContent(body) : undefined;
  if (schema === undefined) return [];
  const alternatives = (schema["anyOf"] ?? [schema]) as JsonObject[];
  const mayBeAbsent = alternatives.some(
    ({ type, required }) => type === "null" || (type === "object" && required === undefined),
  );
  const [first] = alternatives.filter(({ type }) => type !== "null");
  return [`body${mayBeAbsent ? "?" : ""}: ${typeOf(alternatives.length > 2 ? schema : first, "sent")}`];
}

/** Null if the response is not JSON. */
function answerOf(responses: JsonObject): string | null {
  const [good] = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  if (!good) return null;
  if (good[0] === "204") return "null";
  const schema = jsonContent(good[1] as JsonObject);
  return schema === undefined ? null : typeOf(schema, "received");
}

function jsonContent(holder: JsonObject): JsonObject | undefined {
  const content = holder["content"];
  const json = isObject(content) ? content["application/json"] : undefined;
  return isObject(json) ? (json["schema"] as JsonObject) : undefined;
}

export function typeOf(schema: JsonValue | undefined, direction: Direction): string {
  if (!isObject(schema)) throw new TypeError(`${JSON.stringify(schema)} is not a schema`);
  const { $ref, anyOf, oneOf, allOf, type } = schema;
  if (typeof $ref === "string") return `Schemas["${$ref.slice(REFERENCE.length)}"]`;
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  if (Array.isArray(schema["enum"])) return union(schema["enum"].map((value) => JSON.stringify(value)));
  const alternatives = anyOf ?? oneOf;
  if (Array.isArray(alternatives)) return union(alternatives.map((one) => typeOf(one, direction)));
  if (Array.isArray(allOf)) return allOf.map((one) => `(${typeOf(one, direction)})`).join(" & ");
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...schema, type: one }, direction)));
  if (type === undefined) return direction === "sent" ? "unknown" : "JsonValue";
  if (type === "string" || type === "boolean" || type === "null") return type;
  if (type === "number" || type === "integer") return "number";
  if (type === "array") return arrayOf(typeOf(schema["items"] ?? {}, direction));
  if (type === "object") return objectType(schema, direction);
  throw new TypeError(`no type is known for ${JSON.stringify(schema)}`);
}

function objectType(schema: JsonObject, direction: Direction): string {
  const properties = Object.entries(objectIn(schema, "properties"));
  const others = schema["additionalProperties"];
  const required = new Set((schema["required"] ?? []) as string[]);
  if (properties.length === 0) {
    const values = isObject(others) ? typeOf(others, direction) : direction === "sent" ? "unknown" : "JsonValue";
    return `{ [key: string]: ${values} }`;
  }
  const fields = properties.map(([name, value]) => {
    const description = isObject(value) && typeof value["description"] === "string" ? value["description"] : null;
    const comment = description === null ? "" : `/** ${description.replaceAll("*/", "* /")} */\n`;
    return `${comment}${key(name)}${required.has(name) ? "" : "?"}: ${typeOf(value, direction)}`;
  });
  return `{\n${fields.join(";\n")} }`;
}

const union = (types: string[]): string => [...new Set(types)].join(" | ");
const arrayOf = (type: string): string => (/^[\w"[\]]+$/.test(type) ? `${type}[]` : `(${type})[]`);
const key = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));
const objectIn = (holder: JsonObject, name: string): JsonObject => (holder[name] ?? {}) as JsonObject;

/** The schemas that are referenced, directly or through others. */
function reachable(schemas: JsonObject, calls: string): string[] {
  const names = new Set<string>(["Message", "Problem"]);
  const take = (text: string): void => {
    for (const [, name = ""] of text.matchAll(/Schemas\["(\w+)"\]/g)) {
      if (names.has(name)) continue;
      names.add(name);
      take(typeOf(schemas[name], "received"));
    }
  };
  take(calls);
  return Object.keys(schemas).filter((name) => names.has(name));
}
