import { z } from "zod";
import { isObject, type JsonObject, type JsonValue, jsonObjectSchema, jsonSchema } from "./json.ts";
import type { Question } from "./question.ts";

const length = z.int().min(0).optional();
const constants = z.array(z.looseObject({ const: z.string(), title: z.string().optional() })).min(1);

const stringField = z.looseObject({
  type: z.literal("string"),
  minLength: length,
  maxLength: length,
  format: z.enum(["email", "uri", "date", "date-time"]).optional(),
  enum: z.array(z.string()).min(1).optional(),
  oneOf: constants.optional(),
});
const numberField = z.looseObject({
  type: z.enum(["number", "integer"]),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
});
const booleanField = z.looseObject({ type: z.literal("boolean") });
const arrayField = z.looseObject({
  type: z.literal("array"),
  items: z.union([
    z.looseObject({ type: z.literal("string"), enum: z.array(z.string()).min(1) }),
    z.looseObject({ anyOf: constants }),
  ]),
  minItems: length,
  maxItems: length,
});
const fieldSchema = z.discriminatedUnion("type", [stringField, numberField, booleanField, arrayField]);
type Field = z.infer<typeof fieldSchema>;

/** The JSON Schemas that a question may use: an object of primitive fields, as in MCP elicitation. */
export const answerFormSchema = z.looseObject({
  type: z.literal("object"),
  properties: z.record(z.string(), fieldSchema),
  required: z.array(z.string()).optional(),
  additionalProperties: z.boolean().optional(),
});

export type AnswerProblem = { path: (string | number)[]; message: string };

/** The reasons why an answer does not fit its question; empty if it fits. */
export function answerProblems({ choices, schema, about }: Question, answer: JsonValue): AnswerProblem[] {
  const problems = choices ? choiceProblems(choices, answer, []) : [];
  const detailed = isObject(about) ? detailedAnswers.get(about["kind"]) : undefined;
  if (choices && problems.length > 0 && detailed && isObject(answer)) {
    const wrongFields = problemsOf(detailed, answer);
    return wrongFields.length > 0 ? wrongFields : choiceProblems(choices, answer["choice"], ["choice"]);
  }
  if (problems.length > 0) return problems;
  const form = schema === null ? null : answerFormSchema.safeParse(schema);
  // Frames are checked before they are stored, so an unreadable schema cannot come from one; the answer is not checked then.
  return form?.success ? problemsOf(toZod(form.data), answer) : [];
}

/** Fields allowed beside the choice, by the question's kind: a tool call to approve, or a call that may already have run. */
const detailedAnswers: ReadonlyMap<unknown, z.ZodType> = new Map<unknown, z.ZodType>([
  ["tool", z.strictObject({ choice: jsonSchema, args: jsonObjectSchema.optional(), reason: z.string().optional() })],
  ["in_doubt", z.strictObject({ choice: jsonSchema, result: jsonSchema.optional() })],
]);

function choiceProblems(
  choices: NonNullable<Question["choices"]>,
  choice: JsonValue | undefined,
  path: string[],
): AnswerProblem[] {
  if (choice !== undefined && choices.some(({ value }) => isSame(value, choice))) return [];
  const values = choices.map(({ value }) => JSON.stringify(value)).join(", ");
  return [{ path, message: `must be one of ${values.length > 500 ? `${values.slice(0, 500)}…` : values}` }];
}

function problemsOf(schema: z.ZodType, answer: JsonValue): AnswerProblem[] {
  const parsed = schema.safeParse(answer);
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ path: path.map(toKey), message }));
}

/**
 * Parses what a person input as an answer: a choice by its value, label or number; form fields as `name=value` words or one
 * JSON object; anything else as text. `answerProblems` says whether the result fits.
 */
export function answerFromText({ choices, schema }: Pick<Question, "choices" | "schema">, text: string): JsonValue {
  const input = text.trim();
  if (choices) return choiceFrom(choices, input);
  const form = schema === null ? null : answerFormSchema.safeParse(schema);
  return form?.success ? fieldsFrom(form.data, input) : text;
}

/** A choice's value as people read and type it. */
export const choiceText = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The field names of a question's form; empty if it has none. */
export const formFields = (schema: Question["schema"]): string[] =>
  Object.keys((schema?.["properties"] ?? {}) as object);

function choiceFrom(choices: NonNullable<Question["choices"]>, input: string): JsonValue {
  const matchesInput = (candidate: string | undefined): boolean => candidate?.toLowerCase() === input.toLowerCase();
  const choice =
    choices.find(({ value }) => choiceText(value) === input) ??
    choices.find(({ value, label }) => matchesInput(choiceText(value)) || matchesInput(label)) ??
    (/^\d{1,3}$/.test(input) ? choices[Number(input) - 1] : undefined);
  return choice ? choice.value : input;
}

function fieldsFrom({ properties }: z.infer<typeof answerFormSchema>, input: string): JsonValue {
  if (input.startsWith("{"))
    try {
      return JSON.parse(input) as JsonValue;
    } catch {
      return input;
    }
  const names = Object.keys(properties);
  const [only] = names;
  // `name=` starts a field only if the form has a field of that name, so values may contain any other `=`.
  const starts = [...input.matchAll(/(?<=^|\s)([^\s=]+)=/g)].filter(([, name]) => names.includes(name as string));
  if (starts.length === 0)
    return names.length === 1 && only !== undefined ? { [only]: fieldFrom(properties[only], input) } : input;
  return Object.fromEntries(
    starts.map(({ index, 0: start, 1: name = "" }, at) => {
      const value = input.slice(index + start.length, starts[at + 1]?.index).trim();
      return [name, fieldFrom(properties[name], value)];
    }),
  );
}

function fieldFrom(field: Field | undefined, input: string): JsonValue {
  switch (field?.type) {
    case "number":
    case "integer":
      return input !== "" && Number.isFinite(Number(input)) ? Number(input) : input;
    case "boolean":
      return /^(?:true|yes)$/i.test(input) ? true : /^(?:false|no)$/i.test(input) ? false : input;
    case "array":
      return input.split(",").map((item) => item.trim());
    case "string":
    case undefined:
      return input;
  }
  return field satisfies never;
}

const toKey = (key: PropertyKey): string | number => (typeof key === "symbol" ? String(key) : key);

function toZod({ properties, required = [], additionalProperties }: z.infer<typeof answerFormSchema>): z.ZodType {
  const shape = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => {
      const value = valueOf(field);
      return [name, required.includes(name) ? value : value.optional()];
    }),
  );
  return additionalProperties === false ? z.strictObject(shape) : z.looseObject(shape);
}

function valueOf(field: Field): z.ZodType {
  switch (field.type) {
    case "string":
      return stringOf(field);
    case "number":
    case "integer": {
      const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = field;
      const number = field.type === "integer" ? z.number().refine(Number.isInteger, "must be an integer") : z.number();
      return number.min(minimum).max(maximum);
    }
    case "boolean":
      return z.boolean();
    case "array": {
      const values = allowedValues(field.items);
      return z
        .array(z.enum(values))
        .min(field.minItems ?? 0)
        .max(field.maxItems ?? Number.MAX_SAFE_INTEGER);
    }
  }
  return field satisfies never;
}

const FORMATS = {
  email: z.email(),
  uri: z.url(),
  date: z.iso.date(),
  "date-time": z.iso.datetime({ offset: true }),
} as const;

function stringOf({ minLength = 0, maxLength, format, ...field }: z.infer<typeof stringField>): z.ZodType {
  const values = field.enum ?? (field.oneOf && constantsOf(field.oneOf));
  if (values) return z.enum(values);
  // JSON Schema counts code points, JavaScript counts UTF-16 units.
  const limit = maxLength ?? Number.POSITIVE_INFINITY;
  return (format ? FORMATS[format] : z.string())
    .refine((text) => Array.from(text).length >= minLength, `must have at least ${minLength} characters`)
    .refine((text) => Array.from(text).length <= limit, `must have at most ${limit} characters`);
}

const allowedValues = (items: z.infer<typeof arrayField>["items"]): string[] => {
  const parsed = z.object({ enum: z.array(z.string()) }).safeParse(items);
  return parsed.success ? parsed.data.enum : constantsOf(constants.parse(items["anyOf"]));
};

const constantsOf = (list: { const: string }[]): string[] => list.map((item) => item.const);

/** Compares two JSON values; the order of keys does not matter. */
function isSame(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isSame(item, b[at] as JsonValue));
  if (!isObject(a) || !isObject(b)) return a === b;
  return Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((key) => isSameAt(a, b, key));
}

const isSameAt = (a: JsonObject, b: JsonObject, key: string): boolean =>
  Object.hasOwn(b, key) && isSame(a[key] as JsonValue, b[key] as JsonValue);
