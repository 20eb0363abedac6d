import type { Action } from "../../domain/action.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type { TableName } from "../schema.ts";
import type { StoredState } from "../state-delta.ts";
import type { Batch } from "../store.ts";
import {
  arrayOf,
  columnArray,
  type InputColumn,
  NO_VALUES,
  type Scalar,
  type Tables,
  toIndexedWords,
  toText,
} from "./tables.ts";

/** Identifies an attempt at writing a group. */
export type WriteAttempt = { node_no: number; writer_no: number; attempt: number; group_no: number };
export type Statement = { text: string; parameters: Scalar[] };

/**
 * Wraps the parts of a statement that writes a group. The parts list what they refuse in `refused`: batch, reason and id.
 *
 * GROUP-1  It writes nothing if the writer has been given another attempt number meanwhile, so that a statement whose connection
 *          was given up cannot take effect after the next one. Everything it writes depends on `gate`.
 * GROUP-2  The same transaction stores what was refused in `writers`, in case the answer is lost.
 */
export const groupText = (parts: readonly string[], answers: readonly string[] = []): string =>
  `with ${[GATE, ...parts, RECEIPT].join(",\n")}\n${[...ANSWERS, ...answers].join("\nunion all ")}`;

const GATE =
  "gate as materialized (select 1 from writers where node_no = $1 and writer_no = $2 and attempt = $3 for update)"; // GROUP-1
const RECEIPT = `receipt as (update writers set group_no = $4,
    refused = (select coalesce(jsonb_agg(jsonb_build_array(batch, reason, id)), '[]') from refused)
  where node_no = $1 and writer_no = $2 and exists (select 1 from gate))`; // GROUP-2
const ANSWERS = [
  "select 'refused' as kind, batch, reason, id, 0 as number from refused",
  "select 'gate', count(*)::integer, '', '', 0 from gate",
];

export const attemptParameters = ({ node_no, writer_no, attempt, group_no }: WriteAttempt): Scalar[] => [
  node_no,
  writer_no,
  attempt,
  group_no,
];
export const FIRST_FREE_PARAMETER = 5;

/** Turns rows into arrays, one for each column. */
export function toArrays(columns: readonly InputColumn[], rows: readonly (readonly Scalar[])[]): string[] {
  return columns.map(({ default_value }, at) => columnArray(rows, at, default_value));
}

/**
 * Turns the arrays back into rows, in SQL; they start at the parameter of this number. Arrays that are shorter than the first are
 * padded with nulls, so the first must be complete.
 */
export function fromArrays(columns: readonly InputColumn[], first: number): string {
  const arrays = columns.map(({ sql_type }, at) => `$${first + at}::${sql_type}[]`);
  const names = columns.map(({ name }) => name);
  return `select ${columns.map(inputValue).join(", ")} from unnest(${arrays.join(", ")}) as i(${names.join(", ")})`;
}

const inputValue = ({ name, default_value }: InputColumn): string => {
  if (default_value === undefined) return `i.${name}`;
  return `coalesce(i.${name}, ${literal(default_value)}) as ${name}`;
};

const literal = (value: Scalar): string => (typeof value === "string" ? `'${value}'` : String(value));

/** The `place` of a step that succeeded: after all failed attempts. */
export const OK_ROW_ORDER = 2_147_483_647;

/** See `InputColumn`. */
export const DEFAULT_VALUES: Partial<Record<TableName, Readonly<Record<string, Scalar>>>> = {
  agent_state: {
    status: "running",
    error_rows: 0,
    pending_guidance: "[]",
    pending_action_ids: "[]",
    tokens_used: 0,
    cost_usd: 0,
  },
  agent_steps: {
    status: "ok",
    state_kind: "whole",
    guidance: "[]",
    action_ids: "[]",
    tokens_used: 0,
    cost_usd: 0,
    attempts: 1,
    calls: "[]",
    crashes: 0,
  },
  queue: { metadata: "{}", urgency: 0, attempts: 0 },
};

/**
 * What a commit that is only a step does to each field of its session.
 *
 * - `immutable`: never changes after the session's creation
 * - `unchanged`: stays as it is; a commit that changes it needs the statement for any batch
 * - `sent`: has a parameter of its own
 * - `cleared`: becomes null
 * - `stepped`: comes from the step's row
 */
const SESSION_IN_STEP = {
  session_id: "immutable",
  agent_id: "immutable",
  moniker: "immutable",
  params: "immutable",
  created_action_id: "immutable",
  parent_session_id: "immutable",
  parent_iteration: "immutable",
  created_at: "immutable",
  spawned_by: "immutable",
  conversation_id: "unchanged",
  options: "unchanged",
  question: "unchanged",
  wake_at: "unchanged",
  rests_since: "unchanged",
  // Triggers and a computed column hang on these three: a statement that does not name them spares every step their cost.
  status: "unchanged",
  stop_reason: "unchanged",
  pause_reason: "unchanged",
  result: "sent",
  pending_guidance: "sent",
  pending_action_ids: "sent",
  tokens_used: "sent",
  cost_usd: "sent",
  last_error: "cleared",
  ended_at: "cleared",
  started_attempt: "sent",
  retry_at: "cleared",
  step_started_at: "sent",
  iteration: "stepped",
  step_token: "stepped",
  next_step_token: "stepped",
  updated_at: "stepped",
  context: "stepped",
} as const satisfies Record<keyof Session, "immutable" | "unchanged" | "sent" | "cleared" | "stepped">;

const sessionFields = (change: (typeof SESSION_IN_STEP)[keyof Session]): string[] =>
  Object.entries(SESSION_IN_STEP).flatMap(([name, kind]) => (kind === change ? [name] : []));

export const IMMUTABLE_COLUMNS: ReadonlySet<string> = new Set(sessionFields("immutable"));
const CLEARED = sessionFields("cleared") as (keyof Session)[];
const SENT = sessionFields("sent");
/** A column that nobody thought of here, such as one that a later version adds, counts as `unchanged`. */
const changeInStep = (name: string): string => SESSION_IN_STEP[name as keyof Session] ?? "unchanged";

/** Columns of a step that come from how its state is stored. */
const STORED_STATE: ReadonlySet<string> = new Set<keyof StoredState>(["state", "state_kind", "base_iteration"]);

/** The fields of its session that a request which takes effect at once may change. */
const STATUS_FIELDS = [
  "status",
  "stop_reason",
  "last_error",
  "pause_reason",
  "updated_at",
] as const satisfies (keyof Session)[];

/** The fields that such a request always has. */
const SETTLED = {
  processed: true,
  outcome: "ok",
  receipt: "delivered",
  error: null,
  run_at: null,
  consumed_iteration: null,
} as const satisfies Partial<Action>;

/** Columns of the other row that come from the session. */
const OF_SESSION = ["session_id", "agent_id"];

/** The SQL of an input column's value: of the input row, or the constant that all rows have. */
type InputValue = (name: string) => { sql: string; isNull: boolean };

/** In these, `i` is the input row; in the first two, `s` is its session. */
type Parts = {
  /** The session's new values. */
  set: (value: InputValue) => string;
  /** A condition for the update, besides ownership. */
  when: string;
  /** The table of the other row, its columns with a fixed value, and those taken from the input. */
  into: TableName;
  constants: Readonly<Record<string, Scalar>>;
  sent: readonly string[];
  /** Why a row is refused. */
  reason: string;
  /** The columns that usual groups have values for. Without it, all columns are always sent: groups are too small to gain. */
  commonColumns?: readonly string[];
};

/** How many texts a statement may have; each takes memory of the server and time to plan. */
const MOST_TEXTS = 24;

/**
 * A statement for many batches that each update one session and insert one other row, both from the same input row. It reads each
 * session once.
 *
 * Every column costs the server time in each row. So one for which no row of a group has a value, or none but the default, is a
 * constant of the statement's text. Groups are alike, so there are few texts; once there are many, all columns are sent.
 */
function statement(columns: readonly InputColumn[], parts: Parts): SingleRowStatement["statement"] {
  const everything = columns.map(() => true);
  const isCommon = columns.map(
    ({ name }) => OWNERSHIP_NAMES.has(name) || (parts.commonColumns?.includes(name) ?? true),
  );
  const texts = new Map<string, string>();
  const sentOf = (arrays: readonly string[]): readonly boolean[] => {
    const isSent = arrays.map((array) => array !== NO_VALUES);
    return parts.commonColumns && (texts.size < MOST_TEXTS || texts.has(isSent.join())) ? isSent : everything;
  };
  return (rows, attempt) => {
    const arrays = toArrays(columns, rows);
    const isSent = rows.length === 0 ? isCommon : sentOf(arrays);
    const key = isSent.join();
    let text = texts.get(key);
    if (text === undefined) texts.set(key, (text = statementText(columns, isSent, parts)));
    const batches = arrayOf(rows.map((_, batch) => batch));
    return { text, parameters: [...attemptParameters(attempt), batches, ...arrays.filter((_, at) => isSent[at])] };
  };
}

/** The owner is compared in a way that no index supports, so that sessions are found by id, not among all that are owned. */
function statementText(columns: readonly InputColumn[], isSent: readonly boolean[], parts: Parts): string {
  const { set, when, into, constants, sent, reason } = parts;
  const input = columns.filter((_, at) => isSent[at]);
  const inputNames = new Set(namesOf(input));
  const constantOf = new Map(columns.map((column) => [column.name, constant(column)]));
  const value: InputValue = (name) =>
    inputNames.has(name)
      ? { sql: `i.${name}`, isNull: false }
      : { sql: constantOf.get(name) as string, isNull: constantOf.get(name) === NULL };
  const names = [...OF_SESSION, ...Object.keys(constants), ...sent].join(", ");
  const values = [...OF_SESSION, ...Object.values(constants).map(literal), ...sent.map((name) => value(name).sql)];
  const returned = namesOf(input).filter((name) => sent.includes(name));
  return groupText([
    `i as materialized (${fromArrays([BATCH, ...input], FIRST_FREE_PARAMETER)})`,
    `moved as (update agent_state s set ${set(value)}, revision = s.revision + 1, owner_died = false
  from i where s.session_id = i.session_id and s.node_no is not distinct from $1 and s.epoch = i.epoch
    and s.revision = i.revision and exists (select 1 from gate) and ${when}
  returning s.agent_id, s.session_id${returned.map((name) => `, i.${name}`).join("")})`,
    `written as (insert into ${into} (${names}) select ${values.join(", ")} from moved i)`,
    `refused as materialized (select i.batch, ${reason} as reason, i.session_id as id from i
  where (select count(*) from moved) < (select count(*) from i) and i.session_id not in (select session_id from moved))`,
  ]);
}

const NULL = "null";
const constant = ({ sql_type, default_value }: InputColumn): string =>
  default_value === undefined ? NULL : `${literal(default_value)}::${sql_type}`;

const BATCH: InputColumn = { name: "batch", sql_type: "integer" };

const OWNERSHIP: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "epoch", sql_type: "integer" },
  { name: "revision", sql_type: "bigint" },
];

const OWNERSHIP_NAMES: ReadonlySet<string> = new Set(OWNERSHIP.map(({ name }) => name));

/** The session's columns have another name in the input, because the other row has columns of the same name. */
const ofSession = (name: string): string => `session_${name}`;
const setFromInput = (names: readonly string[], value: InputValue): string =>
  names.map((name) => `${name} = ${value(ofSession(name)).sql}`).join(", ");

const withDefaults = (table: TableName, columns: readonly InputColumn[]): InputColumn[] =>
  columns.map((column) => ({ ...column, default_value: DEFAULT_VALUES[table]?.[column.name] }));
/** Some columns of a table, in its order. */
const someOf = (tables: Tables, table: TableName, isOne: (name: string) => boolean): InputColumn[] =>
  withDefaults(
    table,
    tables.input(table).filter(({ name }) => isOne(name)),
  );
const namesOf = (columns: readonly InputColumn[]): string[] => columns.map(({ name }) => name);
const asSessionColumns = (columns: readonly InputColumn[]): InputColumn[] =>
  columns.map((column) => ({ ...column, name: ofSession(column.name) }));

/** One kind of batch: `toRow` encodes a batch, or returns null if it is of another kind; `statement` writes many of them. */
export type SingleRowStatement = {
  toRow: (batch: Batch, plans: readonly SessionPlan[]) => Scalar[] | null;
  statement: (rows: readonly Scalar[][], attempt: WriteAttempt) => Statement;
};

/** The columns that usual steps have values for: this text is planned before the first group comes. */
const COMMON_STEP_COLUMNS = [
  "iteration",
  "session_result",
  "id",
  "created_at",
  "step_token",
  "next_step_token",
  "text",
  "latency_ms",
  "moniker_version",
  "state",
  "base_iteration",
  "words",
];

/** Most commits are a step and nothing else: its session goes on by one iteration. */
export function stepStatement(tables: Tables): SingleRowStatement {
  const session = someOf(tables, "agent_state", (name) => SENT.includes(name));
  const kept = tables.names("agent_state").filter((name) => changeInStep(name) === "unchanged");
  const constants = { place: OK_ROW_ORDER, status: "ok", error: null };
  const state = someOf(tables, "agent_steps", (name) => STORED_STATE.has(name));
  const step = someOf(
    tables,
    "agent_steps",
    (name) => !(name in constants) && !OF_SESSION.includes(name) && !STORED_STATE.has(name) && name !== "iteration",
  );
  const sent = ["iteration", ...namesOf(step), ...namesOf(state), "words"];
  const toSession = tables.encoder("agent_state", namesOf(session));
  const toStep = tables.encoder("agent_steps", namesOf(step));
  const toState = tables.encoder("agent_steps", namesOf(state));
  const resultAt = namesOf(session).indexOf("result");
  return {
    toRow(batch, plans) {
      const plan = plainStep(batch, plans, kept);
      if (!plan) return null;
      const { write, before, last } = plan;
      const [{ step: row, stored }] = plan.steps as [SessionPlan["steps"][number]];
      const sessionValues = toSession(plan.session);
      // An unchanged result is not sent again.
      if (plan.session.result === last.result) sessionValues[resultAt] = null;
      const { epoch, revision } = (write as Extract<typeof write, { kind: "update" }>).owner;
      return [
        toText(plan.session.session_id),
        epoch,
        revision,
        before.iteration + 1,
        ...sessionValues,
        ...toStep(row),
        ...toState(stored),
        toIndexedWords(row.text),
      ];
    },
    statement: statement(
      [
        ...OWNERSHIP,
        { name: "iteration", sql_type: "integer" },
        ...asSessionColumns(session),
        ...step,
        ...state,
        { name: "words", sql_type: "tsvector" },
      ],
      {
        set: setByStep(namesOf(session)),
        commonColumns: COMMON_STEP_COLUMNS,
        when: "s.iteration = i.iteration - 1",
        into: "agent_steps",
        constants,
        sent,
        reason: "'fenced'",
      },
    ),
  };
}

/** The session's new values after a step. A result that does not change is not named, so that no trigger looks at it. */
const setByStep =
  (columns: string[]): Parts["set"] =>
  (value) => {
    const result = value(ofSession("result"));
    const setResult = `result = coalesce(${result.sql}, s.result), search_is_stale = s.search_is_stale or ${result.sql} is not null`;
    return [
      setFromInput(
        columns.filter((name) => name !== "result"),
        value,
      ),
      ...(result.isNull ? [] : [setResult]),
      ...CLEARED.map((name) => `${name} = null`),
      "iteration = i.iteration, context = null",
      ...["step_token", "next_step_token", "base_iteration"].map((name) => `${name} = ${value(name).sql}`),
      `updated_at = ${value("created_at").sql}`,
    ].join(", ");
  };

/** The plan of a batch that is only a step of a session that goes on; else null. */
function plainStep(batch: Batch, plans: readonly SessionPlan[], kept: readonly string[]): SessionPlan | null {
  const [plan, more] = plans;
  if (!plan || more || plan.write.kind !== "update" || plan.steps.length !== 1) return null;
  if (batch.actions?.length || hasOtherRows(batch)) return null;
  const { session, last, context } = plan;
  const [{ step, error_number }] = plan.steps as [SessionPlan["steps"][number]];
  const goesOn =
    error_number === null &&
    context === null &&
    step.error === null &&
    step.agent_id === session.agent_id &&
    (session.result === last.result || session.result !== null) &&
    session.updated_at === step.created_at &&
    session.step_token === step.step_token &&
    session.next_step_token === step.next_step_token &&
    CLEARED.every((name) => session[name] === null) &&
    areKept(kept, last, session);
  return goesOn ? plan : null;
}

/**
 * For a request that takes effect as it is written and changes only whether its session goes on, such as a pause or a resume. The
 * statement is small because somebody is waiting for it.
 */
export function controlStatement(tables: Tables): SingleRowStatement {
  const session = someOf(tables, "agent_state", (name) => (STATUS_FIELDS as readonly string[]).includes(name)).map(
    // Without defaults: those are chosen for steps.
    ({ name, sql_type }) => ({ name, sql_type }),
  );
  const kept = tables
    .names("agent_state")
    .filter((name) => name !== "context" && !(STATUS_FIELDS as readonly string[]).includes(name));
  const action = someOf(tables, "queue", (name) => !(name in SETTLED) && !OF_SESSION.includes(name));
  const toSession = tables.encoder("agent_state", namesOf(session));
  const toAction = tables.encoder("queue", namesOf(action));
  const OTHERS_WAIT = "exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)";
  return {
    toRow(batch, plans) {
      const [plan, morePlans] = plans;
      const [settled, moreActions] = batch.actions ?? [];
      if (!batch.only_if_queue_empty || !plan || morePlans || !settled || moreActions || hasOtherRows(batch))
        return null;
      const { write, last, steps } = plan;
      if (write.kind === "create" || steps.length > 0 || !isLive(plan.session.status)) return null;
      if (settled.session_id !== plan.session.session_id || !isSettled(settled)) return null;
      if (!areKept(kept, last, plan.session)) return null;
      return [
        toText(plan.session.session_id),
        write.owner.epoch,
        write.owner.revision,
        plan.session.iteration,
        ...toSession(plan.session),
        ...toAction(settled),
      ];
    },
    statement: statement(
      [...OWNERSHIP, { name: "session_iteration", sql_type: "integer" }, ...asSessionColumns(session), ...action],
      {
        set: (value) => setFromInput(namesOf(session), value),
        when: `s.iteration = i.session_iteration and not ${OTHERS_WAIT}`,
        into: "queue",
        constants: SETTLED,
        sent: namesOf(action),
        reason: `case when ${OTHERS_WAIT} then 'queue_not_empty' else 'fenced' end`,
      },
    ),
  };
}

const isSettled = (action: Action): boolean =>
  (Object.keys(SETTLED) as (keyof typeof SETTLED)[]).every((name) => action[name] === SETTLED[name]);

/** Whether these fields of a session are as its last commit left them. */
const areKept = (names: readonly string[], last: Session, session: Session): boolean =>
  names.every((name) => session[name as keyof Session] === last[name as keyof Session]);

/** Whether a batch has more than sessions, steps and actions. */
const hasOtherRows = ({ messages, cursors, participants, conversations, agent_configs }: Batch): boolean =>
  [messages, cursors, participants, conversations, agent_configs].some((rows) => rows && rows.length > 0);
