import { answerFromText, choiceText, formFields } from "../../../domain/answer.ts";
import type { Question } from "../../../domain/question.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { findSession } from "../sessions.ts";
import { type ControlOptions, control } from "./control.ts";

export type AnswerOptions = ControlOptions & { user?: string };

/** Answers a session's question. Words are joined, so that a sentence needs no quotes. */
export async function answer(
  client: ApiClient,
  name: string,
  words: string[],
  { user, ...options }: AnswerOptions,
): Promise<void> {
  const { session_id, question } = await findSession(client, name);
  if (question === null)
    throw new CommandError(
      `session ${session_id} has no open question; \`${client.hint("inbox")}\` lists open questions`,
    );
  const body = { answer: answerFromText(question, words.join(" ")), question_id: question.question_id };
  await control(client, "answer", session_id, user === undefined ? body : { ...body, user_id: user }, options);
}

/** A question with its possible answers, for the terminal. */
export function questionText({ text, choices, schema }: Pick<Question, "text" | "choices" | "schema">): string {
  const lines = [text];
  for (const [at, { value, label }] of (choices ?? []).entries()) {
    const shown = choiceText(value);
    lines.push(`  ${at + 1}  ${label === undefined || label === shown ? shown : `${shown}  ${label}`}`);
  }
  if (schema !== null) lines.push(`  fields: ${formFields(schema).join(", ")}`);
  return lines.join("\n");
}
