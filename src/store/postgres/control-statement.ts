import type { Action } from "../../domain/action.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { Batch } from "../store.ts";
import { fromArrays, type InputColumn, toArrays } from "./input-columns.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import { hasOtherRows } from "./step-statement.ts";
import { type Scalar, toJson, toText } from "./values.ts";
import { FIRST_FREE_PARAMETER, groupText, type Statement, type WriterPlace, writerParameters } from "./writer-place.ts";

/**
 * A request that takes effect as it is written, and changes only whether its session goes on: a pause, a resume. The
 * statement is small, because somebody waits for it.
 */
const COLUMNS: readonly InputColumn[] = [
  { name: "batch", sql_type: "integer" },
  { name: "session_id", sql_type: "text" },
  { name: "epoch", sql_type: "integer" },
  { name: "iteration", sql_type: "integer" },
  { name: "status", sql_type: "text" },
  { name: "stop_reason", sql_type: "text" },
  { name: "last_error", sql_type: "text" },
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
  if (!batch.overtakes_none || !plan || morePlans || !action || moreActions || hasOtherRows(batch)) return null;
  const { write, session, last, steps } = plan;
  if (write.kind === "create" || steps.length > 0 || !isLive(session.status)) return null;
  if (action.session_id !== session.session_id || !wentWell(action) || !onlyStatusChanges(last, session)) return null;
  return [
    toText(session.session_id),
    write.owner.epoch,
    session.iteration,
    session.status,
    session.stop_reason,
    session.last_error === null ? null : toText(session.last_error),
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

const STATUS_FIELDS: ReadonlySet<string> = new Set(["status", "stop_reason", "last_error", "updated_at", "context"]);

const onlyStatusChanges = (last: Session, session: Session): boolean =>
  (Object.keys(session) as (keyof Session)[]).every((key) => STATUS_FIELDS.has(key) || session[key] === last[key]);

export function controlStatement(rows: readonly Scalar[][], writer: WriterPlace): Statement {
  const numbered = rows.map((row, batch) => [batch, ...row]);
  return { text: TEXT, parameters: [...writerParameters(writer), ...toArrays(COLUMNS, numbered)] };
}

const ACTION_COLUMNS = COLUMNS.slice(COLUMNS.findIndex(({ name }) => name === "action_id")).map(({ name }) => name);

const OTHERS_WAIT = "exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)";

// For the way the owner is compared, see step-statement.ts.
const TEXT = groupText([
  `i as materialized (${fromArrays(COLUMNS, FIRST_FREE_PARAMETER)})`,
  `moved as (update agent_state s set status = i.status, stop_reason = i.stop_reason, last_error = i.last_error,
    updated_at = i.updated_at
  from i where s.session_id = i.session_id and s.node_no is not distinct from $1 and s.epoch = i.epoch
    and s.iteration = i.iteration and exists (select 1 from gate) and not ${OTHERS_WAIT}
  returning s.agent_id, i.*)`,
  `written as (insert into queue (session_id, agent_id, processed, outcome, receipt, ${ACTION_COLUMNS.join(", ")})
  select session_id, agent_id, true, 'ok', 'delivered', ${ACTION_COLUMNS.join(", ")} from moved)`,
  `refused as materialized (select i.batch, case when ${OTHERS_WAIT} then 'overtakes' else 'fenced' end as reason,
    i.session_id as id from i where i.session_id not in (select session_id from moved))`,
]);
