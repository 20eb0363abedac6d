import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { isObject, type JsonObject, jsonObjectSchema, jsonSchema } from "./json.ts";

const choiceSchema = z.object({ value: jsonSchema, label: z.string().optional() });

/** A question that a step asks people, and the answers it allows. */
export const askSchema = z.object({
  text: z.string().min(1),
  /** The allowed answers; any answer if absent. */
  choices: z.array(choiceSchema).min(1).optional(),
  /** A flat JSON Schema object: the answer is an object with these fields. */
  schema: jsonObjectSchema.optional(),
  /** What the question is about, shown to people. */
  about: jsonSchema.optional(),
});
export type Ask = z.infer<typeof askSchema>;

/** An open question. The commit of the next step closes it, whatever caused that step. */
export const questionSchema = z.object({
  question_id: idSchema,
  text: z.string(),
  choices: z.array(choiceSchema).nullable(),
  schema: jsonObjectSchema.nullable(),
  about: jsonSchema,
  asked_at: timeSchema,
  /** The iteration of the step that asked. */
  iteration: z.int().min(0),
});
export type Question = z.infer<typeof questionSchema>;

export const questionOf = (
  { text, choices, schema, about }: Ask,
  { question_id, asked_at, iteration }: Pick<Question, "question_id" | "asked_at" | "iteration">,
): Question => ({
  question_id,
  text,
  choices: choices ?? null,
  schema: schema ?? null,
  about: about ?? null,
  asked_at,
  iteration,
});

/** A moniker may also ask by keeping `question: {text}` in its state until it is answered. */
export function askedInState(state: JsonObject): Ask | null {
  const question = state["question"];
  if (!isObject(question) || typeof question["text"] !== "string" || question["text"] === "") return null;
  return { text: question["text"] };
}
