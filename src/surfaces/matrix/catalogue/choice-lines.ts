import { choiceText, formFields } from "../../../domain/answer.ts";
import { isObject, type JsonValue } from "../../../domain/json.ts";
import type { Question } from "../../../domain/question.ts";

/** Characters of what a question is about; the rest can be looked at in the console. */
const LONGEST_DETAIL = 3000;

/** The choices of a question, numbered, and the fields of its form. */
export function choiceLines({ choices, schema }: Question): string[] {
  const fields = formFields(schema);
  return [
    ...(choices ?? []).map(({ value, label }, at) => `${at + 1}. ${label ?? choiceText(value)}`),
    ...(fields.length > 0 ? [fields.map((name) => `\`${name}=…\``).join(" ")] : []),
  ];
}

/** The call that a question is about: one that a person is to allow, or one that may have happened already. */
export type AskedCall = { kind: "tool" | "in_doubt"; tool: string };

export function askedCall({ about }: Question): AskedCall | null {
  if (!isObject(about) || typeof about["tool"] !== "string") return null;
  const { kind, tool } = about;
  return kind === "tool" || kind === "in_doubt" ? { kind, tool } : null;
}

/** What a question is about, in full, as a block of JSON: the arguments of a call, or whatever was asked with. */
export function detailLines(question: Question): string[] {
  const { about } = question;
  const detail: JsonValue = askedCall(question) && isObject(about) ? (about["args"] ?? null) : about;
  if (detail === null) return [];
  const json = JSON.stringify(detail, null, 2);
  const short = json.length > LONGEST_DETAIL ? `${json.slice(0, LONGEST_DETAIL)}…` : json;
  // A fence within it would end the block.
  return [`\`\`\`\`json\n${short.replaceAll("````", "```")}\n\`\`\`\``];
}
