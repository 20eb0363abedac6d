import { z } from "zod";
import type { JsonValue } from "./json.ts";
import { isHeld, isStoppedByLimit, type Session, sessionSchema } from "./session.ts";
import { folded } from "./words.ts";

/** A session as lists show it: without state, parameters and the full result. */
export const sessionSummarySchema = sessionSchema
  .pick({
    agent_id: true,
    session_id: true,
    conversation_id: true,
    moniker: true,
    options: true,
    status: true,
    stop_reason: true,
    iteration: true,
    last_error: true,
    tokens_used: true,
    parent_session_id: true,
    parent_iteration: true,
    pause_reason: true,
    question: true,
    wake_at: true,
    spawned_by: true,
    retry_at: true,
    cost_usd: true,
    created_at: true,
    updated_at: true,
    ended_at: true,
  })
  .extend({
    /** The first characters of the last result. */
    text: z.string().nullable(),
  });
export type SessionSummary = z.infer<typeof sessionSummarySchema>;

const LONGEST_TEXT = 300;

export function summaryOf(row: Omit<Session, "context" | "params">): SessionSummary {
  const names = Object.keys(sessionSummarySchema.shape).filter((key) => key in row);
  const fields = Object.fromEntries(names.map((key) => [key, row[key as keyof typeof row]]));
  return { ...fields, text: beginningOf(row.result) } as SessionSummary;
}

/** Whether a person should look at the session: it asks something, it failed, it is held, or a limit stopped it. */
export const needsPerson = (
  summary: Pick<SessionSummary, "status" | "stop_reason" | "question" | "pause_reason">,
): boolean => summary.question !== null || summary.status === "error" || isHeld(summary) || isStoppedByLimit(summary);

/** The text that `q` searches: ids, moniker and the start of the last result. */
export const searchedText = ({
  session_id,
  agent_id,
  moniker,
  text,
}: Pick<SessionSummary, "session_id" | "agent_id" | "moniker" | "text">): string =>
  folded([session_id, agent_id, moniker, text ?? ""].join(" "));

export function beginningOf(result: JsonValue): string | null {
  if (result === null) return null;
  const text = typeof result === "string" ? result : JSON.stringify(result);
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT).toWellFormed()}…` : text;
}
