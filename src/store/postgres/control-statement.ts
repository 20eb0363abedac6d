import type { Action } from "../../domain/action.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { Batch } from "../store.ts";
import type { InputColumn } from "./input-columns.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import { namesFrom, rowStatement } from "./row-statement.ts";
import { hasOtherRows } from "./step-statement.ts";
import { type Scalar, toJson, toText } from "./values.ts";

/**
 * A request that takes effect as it is written, and changes only whether its session goes on: a pause, a resume. The
 * statement is small, because somebody waits for it.
 */
const COLUMNS: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "epoch", sql_type: "integer" },
  { name: "revision", sql_type: "bigint" },
  { name: "iteration", sql_type: "integer" },
  { name: "status", sql_type: "text" },
  { name: "stop_reason", sql_type: "text" },
  { name: "last_error", sql_type: "text" },
  { name: "pause_reason", sql_type: "jsonb" },
  { name: "updated_at", sql_type: "timestamptz" },
  { name: "action_id", sql_type: "text" },
  { name: "created_at", sql_type: "timestamptz" },
  { name: "action_type", sql_type: "text" },
  { name: "payload", sql_type: "jsonb" },
  { name: "metadata", sql_type: "jsonb", usual: "{}" },
  { name: "urgency", sql_type: "integer", usual: 0 },
  { name: "processed_at", sql_type: "timestamptz" },
  { name: "attempts", sql_type: "integer" },
];

/** The values of such a batch; null where it is more. */
export function toControlRow(batch: Batch, plans: readonly SessionPlan[]): Scalar[] | null {
  const [plan, morePlans] = plans;
  const [action, moreActions] = batch.actions ?? [];
  if (!batch.only_if_queue_empty || !plan || morePlans || !action || moreActions || hasOtherRows(batch)) return null;
  const { write, session, last, steps } = plan;
  if (write.kind === "create" || steps.length > 0 || !isLive(session.status)) return null;
  if (action.session_id !== session.session_id || !wentWell(action) || !onlyStatusChanges(last, session)) return null;
  return [
    toText(session.session_id),
    write.owner.epoch,
    write.owner.revision,
    session.iteration,
    session.status,
    session.stop_reason,
    session.last_error === null ? null : toText(session.last_error),
    session.pause_reason === null ? null : toJson(session.pause_reason),
    session.updated_at,
    toText(action.action_id),
    action.created_at,
    action.action_type,
    toJson(action.payload),
    toJson(action.metadata),
    action.urgency,
    action.processed_at,
    action.attempts,
  ];
}

const wentWell = ({ processed, outcome, receipt, error, run_at, consumed_iteration }: Action): boolean =>
  processed &&
  outcome === "ok" &&
  receipt === "delivered" &&
  error === null &&
  run_at === null &&
  consumed_iteration === null;

const STATUS_FIELDS: ReadonlySet<string> = new Set([
  "status",
  "stop_reason",
  "last_error",
  "pause_reason",
  "updated_at",
  "context",
]);

const onlyStatusChanges = (last: Session, session: Session): boolean =>
  (Object.keys(session) as (keyof Session)[]).every((key) => STATUS_FIELDS.has(key) || session[key] === last[key]);

const ACTION_COLUMNS = namesFrom(COLUMNS, "action_id");
const OTHERS_WAIT = "exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)";

export const controlStatement = rowStatement(COLUMNS, {
  set: "status = i.status, stop_reason = i.stop_reason, last_error = i.last_error, pause_reason = i.pause_reason, updated_at = i.updated_at",
  when: `s.iteration = i.iteration and not ${OTHERS_WAIT}`,
  insert: {
    into: `queue (session_id, agent_id, processed, outcome, receipt, ${ACTION_COLUMNS})`,
    values: `session_id, agent_id, true, 'ok', 'delivered', ${ACTION_COLUMNS}`,
  },
  reason: `case when ${OTHERS_WAIT} then 'queue_not_empty' else 'fenced' end`,
});
