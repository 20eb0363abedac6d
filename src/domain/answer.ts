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

/** The JSON Schemas that a question may have: an object of plain fields, as MCP's elicitation has them. */
export const answerFormSchema = z.looseObject({
  type: z.literal("object"),
  properties: z.record(z.string(), fieldSchema),
  required: z.array(z.string()).optional(),
  additionalProperties: z.boolean().optional(),
});

export type AnswerProblem = { path: (string | number)[]; message: string };

/** Why an answer does not fit its question; nothing where it does. */
export function answerProblems({ choices, schema, about }: Question, answer: JsonValue): AnswerProblem[] {
  const problems = choices ? choiceProblems(choices, answer, []) : [];
  const detailed = isObject(about) ? detailedAnswers.get(about["kind"]) : undefined;
  if (choices && problems.length > 0 && detailed && isObject(answer)) {
    const wrongFields = problemsOf(detailed, answer);
    return wrongFields.length > 0 ? wrongFields : choiceProblems(choices, answer["choice"], ["choice"]);
  }
  if (problems.length > 0) return problems;
  const form = schema === null ? null : answerFormSchema.safeParse(schema);
  // A question whose schema cannot be read was never asked by a frame: nothing can be held against the answer.
  return form?.success ? problemsOf(toZod(form.data), answer) : [];
}

/** What may be said beside the choice, by the kind of what is asked about: a call of a tool, or one that may have happened. */
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
  const known = choices.map(({ value }) => JSON.stringify(value)).join(", ");
  return [{ path, message: `must be one of ${known.length > 500 ? `${known.slice(0, 500)}…` : known}` }];
}

function problemsOf(schema: z.ZodType, answer: JsonValue): AnswerProblem[] {
  const parsed = schema.safeParse(answer);
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ path: path.map(toKey), message }));
}

/**
 * What a person typed as an answer: a choice by its value, its label or its number; the fields of a form as `name=value` words or as
 * one JSON object; anything else as text. Whether it fits is told by `answerProblems`.
 */
export function answerFromText({ choices, schema }: Pick<Question, "choices" | "schema">, text: string): JsonValue {
  const typed = text.trim();
  if (choices) return choiceFrom(choices, typed);
  const form = schema === null ? null : answerFormSchema.safeParse(schema);
  return form?.success ? fieldsFrom(form.data, typed) : text;
}

/** A choice's value as people see and type it. */
export const choiceText = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The fields of a question's form; none where it has no form. */
export const formFields = (schema: Question["schema"]): string[] =>
  Object.keys((schema?.["properties"] ?? {}) as object);

function choiceFrom(choices: NonNullable<Question["choices"]>, typed: string): JsonValue {
  const isTyped = (candidate: string | undefined): boolean => candidate?.toLowerCase() === typed.toLowerCase();
  const choice =
    choices.find(({ value }) => choiceText(value) === typed) ??
    choices.find(({ value, label }) => isTyped(choiceText(value)) || isTyped(label)) ??
    (/^\d{1,3}$/.test(typed) ? choices[Number(typed) - 1] : undefined);
  return choice ? choice.value : typed;
}

function fieldsFrom({ properties }: z.infer<typeof answerFormSchema>, typed: string): JsonValue {
  if (typed.startsWith("{"))
    try {
      return JSON.parse(typed) as JsonValue;
    } catch {
      return typed;
    }
  const names = Object.keys(properties);
  const [only] = names;
  // `name=` begins a field only where the form has one of that name, so that values may contain anything else.
  const starts = [...typed.matchAll(/(?<=^|\s)([^\s=]+)=/g)].filter(([, name]) => names.includes(name as string));
  if (starts.length === 0)
    return names.length === 1 && only !== undefined ? { [only]: fieldFrom(properties[only], typed) } : typed;
  return Object.fromEntries(
    starts.map(({ index, 0: start, 1: name = "" }, at) => {
      const value = typed.slice(index + start.length, starts[at + 1]?.index).trim();
      return [name, fieldFrom(properties[name], value)];
    }),
  );
}

function fieldFrom(field: Field | undefined, typed: string): JsonValue {
  switch (field?.type) {
    case "number":
    case "integer":
      return typed !== "" && Number.isFinite(Number(typed)) ? Number(typed) : typed;
    case "boolean":
      return /^(?:true|yes)$/i.test(typed) ? true : /^(?:false|no)$/i.test(typed) ? false : typed;
    case "array":
      return typed.split(",").map((item) => item.trim());
    case "string":
    case undefined:
      return typed;
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
      const known = listedIn(field.items);
      return z
        .array(z.enum(known))
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
  const known = field.enum ?? (field.oneOf && constantsOf(field.oneOf));
  if (known) return z.enum(known);
  // JSON Schema counts characters, JavaScript their halves.
  const longest = maxLength ?? Number.POSITIVE_INFINITY;
  return (format ? FORMATS[format] : z.string())
    .refine((text) => Array.from(text).length >= minLength, `must have at least ${minLength} characters`)
    .refine((text) => Array.from(text).length <= longest, `must have at most ${longest} characters`);
}

const listedIn = (items: z.infer<typeof arrayField>["items"]): string[] => {
  const listed = z.object({ enum: z.array(z.string()) }).safeParse(items);
  return listed.success ? listed.data.enum : constantsOf(constants.parse(items["anyOf"]));
};

const constantsOf = (list: { const: string }[]): string[] => list.map((item) => item.const);

/** Whether two JSON values are the same, in whatever order their keys are. */
function isSame(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isSame(item, b[at] as JsonValue));
  if (!isObject(a) || !isObject(b)) return a === b;
  return Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((key) => isSameAt(a, b, key));
}

const isSameAt = (a: JsonObject, b: JsonObject, key: string): boolean =>
  Object.hasOwn(b, key) && isSame(a[key] as JsonValue, b[key] as JsonValue);
