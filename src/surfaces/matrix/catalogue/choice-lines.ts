import type { JsonValue } from "../../../domain/json.ts";
import type { Question } from "../../../domain/question.ts";

/** The choices of a question, numbered, and the fields of its form. */
export function choiceLines({ choices, schema }: Question): string[] {
  const shown = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));
  const fields = Object.keys((schema?.["properties"] ?? {}) as object);
  return [
    ...(choices ?? []).map(({ value, label }, at) => `${at + 1}. ${label ?? shown(value)}`),
    ...(fields.length > 0 ? [fields.map((name) => `\`${name}=…\``).join(" ")] : []),
  ];
}
