import { z } from "zod";
import type { Action } from "../../domain/action.ts";
import { choiceText } from "../../domain/answer.ts";
import { questionSchema } from "../../domain/question.ts";
import { isLive, type Session, sessionSchema } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";

/** A session for a model: without its state and fields that only the runtime uses. */
const sessionViewSchema = sessionSchema
  .pick({ session_id: true, agent_id: true, moniker: true, status: true, stop_reason: true, iteration: true })
  .extend({
    params: z.unknown(),
    result: z.unknown(),
    last_error: z.string().nullable(),
    question: questionSchema.extend({ choices: z.unknown(), schema: z.unknown(), about: z.unknown() }).nullable(),
    wake_at: z.string().nullable(),
    tokens_used: z.int(),
    cost_usd: z.number(),
    created_at: z.string(),
    updated_at: z.string(),
  });

const stepViewSchema = z.object({
  iteration: z.int(),
  step_token: z.string(),
  status: z.string(),
  text: z.string().nullable(),
  data: z.unknown(),
  guidance: z.unknown(),
  error: z.string().nullable(),
  created_at: z.string(),
});

const NEXT = "What can be done now.";
export const readingSchema = z.object({
  session: sessionViewSchema,
  steps: z.array(stepViewSchema),
  next: z.string().describe(NEXT),
});

export const receiptSchema = z.object({
  action_id: z.string(),
  session_id: z.string(),
  receipt: z.string().describe("accepted, delivered, consumed (a step used it) or bounced (no step will use it)"),
  outcome: z.string().nullable(),
  error: z.string().nullable(),
  consumed_iteration: z.int().nullable(),
  text: z.string().nullable().describe("The text of the step that used it."),
  next: z.string().describe(NEXT),
});

export function sessionView(session: Session): z.infer<typeof sessionViewSchema> {
  const { session_id, agent_id, moniker, status, stop_reason, iteration, params, result, last_error } = session;
  const { question, wake_at, tokens_used, cost_usd, created_at, updated_at } = session;
  const ids = { session_id, agent_id, moniker, status, stop_reason, iteration };
  return { ...ids, params, result, last_error, question, wake_at, tokens_used, cost_usd, created_at, updated_at };
}

export const stepView = ({ iteration, step_token, status, text, data, guidance, error, created_at }: Step) => ({
  iteration,
  step_token,
  status,
  text,
  data,
  guidance,
  error,
  created_at,
});

/** The next action, for a model that has just read a session. */
export function nextMove(session: Session): string {
  const { session_id, status, question, last_error } = session;
  if (question !== null) return questionText(session);
  switch (status) {
    case "running":
    case "stopping":
      return `It is running: read_session with wait_s waits until it rests; guide sends guidance to its next step.`;
    case "waiting":
      return `It waits: guide ${session_id} to continue it.`;
    case "paused":
      return "It is paused: resume continues it.";
    case "error":
      return `It failed (${last_error ?? "for an unknown reason"}): resume retries the step, after guide if it should do something else.`;
    case "done":
      return "It is done; see result. fork starts a new session from any of its steps.";
    case "stopped":
      return "It was stopped: if a limit did that, resume with a higher limit in options; fork starts a new session from any of its steps.";
  }
  return status satisfies never;
}

export function questionText({ session_id, question }: Pick<Session, "session_id" | "question">): string {
  if (question === null) return "";
  const { text, choices, schema } = question;
  const how = choices
    ? `one of ${choices.map(({ value }) => JSON.stringify(value)).join(", ")}`
    : schema
      ? "an object that fits question.schema"
      : "any text";
  return `It asks a person: “${text}” Ask the person, and pass on their reply with answer {session_id: ${JSON.stringify(session_id)}, answer: ${how}}.`;
}

export function receiptView(action: Action, step: Step | null, session: Session | null): z.infer<typeof receiptSchema> {
  const { action_id, session_id, receipt, outcome, error, consumed_iteration } = action;
  const used = step?.text ?? null;
  return {
    action_id,
    session_id,
    receipt,
    outcome,
    error,
    consumed_iteration,
    text: used,
    next: afterReceipt(action, session),
  };
}

function afterReceipt({ receipt, error }: Action, session: Session | null): string {
  switch (receipt) {
    case "accepted":
    case "delivered":
      if (session?.status === "paused") return "The session has it but is paused: resume continues it.";
      return "No step has used it yet: read_session with wait_s waits until the session rests.";
    case "consumed":
      return session && (isLive(session.status) || session.status === "error")
        ? nextMove(session)
        : "The session has ended; read_session shows its result.";
    case "bounced":
      return `It bounced: ${error ?? "the session ended first"}. fork starts a new session from one of its steps.`;
  }
  return receipt satisfies never;
}

/** A question as a form for an MCP client, and how the form's content becomes the answer. */
export function questionForm({ choices, schema }: NonNullable<Session["question"]>): {
  schema: Record<string, unknown>;
  answerOf: (content: Record<string, unknown>) => unknown;
} {
  if (choices) {
    const options = choices.map(({ value, label }) => ({
      const: choiceText(value),
      title: label ?? choiceText(value),
    }));
    const answer = { type: "string", title: "Answer", oneOf: options };
    return {
      schema: { type: "object", properties: { answer }, required: ["answer"] },
      answerOf: (content) =>
        choices.find(({ value }) => choiceText(value) === content["answer"])?.value ?? content["answer"],
    };
  }
  if (schema) return { schema, answerOf: (content) => content };
  const answer = { type: "string", title: "Answer" };
  return {
    schema: { type: "object", properties: { answer }, required: ["answer"] },
    answerOf: (content) => content["answer"],
  };
}
