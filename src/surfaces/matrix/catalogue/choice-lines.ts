import { choiceText, formFields } from "../../../domain/answer.ts";
import type { Question } from "../../../domain/question.ts";

/** The choices of a question, numbered, and the fields of its form. */
export function choiceLines({ choices, schema }: Question): string[] {
  const fields = formFields(schema);
  return [
    ...(choices ?? []).map(({ value, label }, at) => `${at + 1}. ${label ?? choiceText(value)}`),
    ...(fields.length > 0 ? [fields.map((name) => `\`${name}=…\``).join(" ")] : []),
  ];
}
