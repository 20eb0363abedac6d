import type { Batch } from "../store.ts";
import type { InputColumn } from "./input-columns.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import { namesFrom, rowStatement } from "./row-statement.ts";
import { LAST_PLACE } from "./tables.ts";
import { type Scalar, toJson, toQuestion, toText } from "./values.ts";
import { toIndexedWords } from "./words.ts";

/** Most commits are a step and nothing else: its session goes on by one iteration. */
const COLUMNS: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "epoch", sql_type: "integer" },
  { name: "revision", sql_type: "bigint" },
  { name: "iteration", sql_type: "integer" },
  { name: "session_status", sql_type: "text", usual: "running" },
  { name: "result", sql_type: "jsonb" },
  { name: "pending_guidance", sql_type: "jsonb", usual: "[]" },
  { name: "pending_action_ids", sql_type: "jsonb", usual: "[]" },
  { name: "session_tokens", sql_type: "bigint", usual: 0 },
  { name: "question", sql_type: "text" },
  { name: "id", sql_type: "text" },
  { name: "created_at", sql_type: "timestamptz" },
  { name: "step_token", sql_type: "text" },
  { name: "next_step_token", sql_type: "text" },
  { name: "text", sql_type: "text" },
  { name: "data", sql_type: "jsonb" },
  { name: "state", sql_type: "json" },
  { name: "state_kind", sql_type: "text", usual: "whole" },
  { name: "base_iteration", sql_type: "integer" },
  { name: "guidance", sql_type: "jsonb", usual: "[]" },
  { name: "notes", sql_type: "text" },
  { name: "latency_ms", sql_type: "double precision" },
  { name: "tokens_used", sql_type: "bigint", usual: 0 },
  { name: "action_ids", sql_type: "jsonb", usual: "[]" },
  { name: "words", sql_type: "tsvector" },
];

/** The values of a batch that is a step and nothing else; null where it is more, or where its session rests from now on. */
export function toStepRow(batch: Batch, plans: readonly SessionPlan[]): Scalar[] | null {
  const [plan, more] = plans;
  if (!plan || more || plan.write.kind !== "update" || plan.steps.length !== 1) return null;
  if (batch.actions?.length || hasOtherRows(batch)) return null;
  const { write, session, last, context } = plan;
  const keepsResult = session.result === last.result;
  const [{ step, stored, error_number }] = plan.steps as [SessionPlan["steps"][number]];
  const goesOn =
    error_number === null &&
    context === null &&
    session.options === last.options &&
    (keepsResult || session.result !== null) &&
    session.last_error === null &&
    session.stop_reason === null &&
    session.ended_at === null &&
    session.pause_reason === null &&
    session.started_attempt === null &&
    session.updated_at === step.created_at &&
    session.step_token === step.step_token &&
    session.next_step_token === step.next_step_token;
  if (!goesOn) return null;
  return [
    toText(session.session_id),
    write.owner.epoch,
    write.owner.revision,
    step.iteration,
    session.status,
    keepsResult ? null : toJson(session.result),
    toJson(session.pending_guidance),
    toJson(session.pending_action_ids),
    session.tokens_used,
    toQuestion(session),
    toText(step.id),
    step.created_at,
    toText(step.step_token),
    toText(step.next_step_token),
    step.text === null ? null : toText(step.text),
    step.data === null ? null : toJson(step.data),
    stored.state,
    stored.state_kind,
    stored.base_iteration,
    toJson(step.guidance),
    step.notes === null ? null : toText(step.notes),
    step.latency_ms,
    step.tokens_used,
    toJson(step.action_ids),
    toIndexedWords(step.text),
  ];
}

/** Whether a batch has more than sessions, steps and actions. */
export const hasOtherRows = ({ messages, cursors, participants, conversations, agent_configs }: Batch): boolean =>
  [messages, cursors, participants, conversations, agent_configs].some((rows) => rows && rows.length > 0);

const STEP_COLUMNS = namesFrom(COLUMNS, "id");

export const stepStatement = rowStatement(COLUMNS, {
  set: `iteration = i.iteration, status = i.session_status, step_token = i.step_token,
    next_step_token = i.next_step_token, result = coalesce(i.result, s.result), pending_guidance = i.pending_guidance,
    pending_action_ids = i.pending_action_ids, last_error = null, tokens_used = i.session_tokens, updated_at = i.created_at,
    stop_reason = null, ended_at = null, pause_reason = null, started_attempt = null, base_iteration = i.base_iteration, context = null,
    question = i.question, search_is_stale = s.search_is_stale or i.result is not null`,
  when: "s.iteration = i.iteration - 1",
  insert: {
    into: `agent_steps (session_id, iteration, agent_id, place, status, ${STEP_COLUMNS})`,
    values: `session_id, iteration, agent_id, ${LAST_PLACE}, 'ok', ${STEP_COLUMNS}`,
  },
  reason: "'fenced'",
});
