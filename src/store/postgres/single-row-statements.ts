import type { Action } from "../../domain/action.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type { TableName } from "../schema.ts";
import type { Batch } from "../store.ts";
import { arrayOf, type InputColumn, type Scalar, type Tables, toIndexedWords, toText } from "./tables.ts";

/** Which attempt of which group a statement is. */
export type WriteAttempt = { node_no: number; writer_no: number; attempt: number; group_no: number };
export type Statement = { text: string; parameters: Scalar[] };

/**
 * A statement that writes a group: what every one has beside its own parts, which name what they refuse in `refused`, with a
 * batch, a reason and an id.
 *
 * GROUP-1  It writes nothing where the writer was given another attempt number meanwhile: an old statement that is still on
 *          its way when its connection is given up cannot come after the new one. So all it writes depends on the gate.
 * GROUP-2  What was refused is kept in `writers` by the same transaction, for when the answer is lost.
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

/** The rows as arrays, one for each column. */
export function toArrays(columns: readonly InputColumn[], rows: readonly (readonly Scalar[])[]): string[] {
  return columns.map(({ default_value }, at) =>
    arrayOf(rows, (row) => (row[at] === default_value ? null : (row[at] as Scalar))),
  );
}

/**
 * The rows again, from arrays that begin with a parameter of this number. Arrays that are shorter than the first one are
 * filled up with nulls; the first must have none.
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

/** The place of the step row that succeeded: after every attempt that failed. */
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
  },
  queue: { metadata: "{}", urgency: 0, attempts: 0 },
};

/**
 * What a step that is all of its commit does to each field of its session.
 *
 * - `immutable`: it never changes after the session's creation
 * - `unchanged`: a commit that changes it takes the statement for any batch; so does one of a field that is not in this list
 * - `sent`: it has a parameter of its own
 * - `cleared`: it becomes null
 * - `stepped`: the step's row tells it
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
  status: "sent",
  result: "sent",
  pending_guidance: "sent",
  pending_action_ids: "sent",
  tokens_used: "sent",
  cost_usd: "sent",
  last_error: "cleared",
  stop_reason: "cleared",
  ended_at: "cleared",
  pause_reason: "cleared",
  started_attempt: "cleared",
  retry_at: "cleared",
  step_started_at: "cleared",
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

/** What a request that takes effect as it is written may change of its session: whether it goes on. */
const STATUS_FIELDS = [
  "status",
  "stop_reason",
  "last_error",
  "pause_reason",
  "updated_at",
] as const satisfies (keyof Session)[];

/** What such a request is once it is written. */
const SETTLED = {
  processed: true,
  outcome: "ok",
  receipt: "delivered",
  error: null,
  run_at: null,
  consumed_iteration: null,
} as const satisfies Partial<Action>;

/** Columns of the other row that the session's tell. */
const OF_SESSION = ["session_id", "agent_id"];

/** In all of these `i` is the row of input, and in the first two `s` its session. */
type Parts = {
  /** What changes of the session. */
  set: string;
  /** Where that may be, beside that the session is this process's. */
  when: string;
  /** What else is written: a table with the columns that have a value of their own, and those that the input has. */
  into: TableName;
  constants: Readonly<Record<string, Scalar>>;
  sent: readonly string[];
  /** Why a row is refused. */
  reason: string;
};

/**
 * A statement for many batches of which each changes one session and writes one other row. It looks at each session once, writes
 * what changed of it, and takes the other row from the same input.
 *
 * The owner is compared in a way that no index serves: sessions are to be found by their ids, not among all that are owned.
 */
function statement(columns: readonly InputColumn[], { set, when, into, constants, sent, reason }: Parts) {
  const all = [{ name: "batch", sql_type: "integer" }, ...columns];
  const names = [...OF_SESSION, ...Object.keys(constants), ...sent].join(", ");
  const values = [...OF_SESSION, ...Object.values(constants).map(literal), ...sent].join(", ");
  const text = groupText([
    `i as materialized (${fromArrays(all, FIRST_FREE_PARAMETER)})`,
    `moved as (update agent_state s set ${set}, revision = s.revision + 1, owner_died = false
  from i where s.session_id = i.session_id and s.node_no is not distinct from $1 and s.epoch = i.epoch
    and s.revision = i.revision and exists (select 1 from gate) and ${when}
  returning s.agent_id, i.*)`,
    `written as (insert into ${into} (${names}) select ${values} from moved)`,
    `refused as materialized (select i.batch, ${reason} as reason, i.session_id as id from i
  where i.session_id not in (select session_id from moved))`,
  ]);
  return (rows: readonly Scalar[][], attempt: WriteAttempt): Statement => {
    const numbered = rows.map((row, batch) => [batch, ...row]);
    return { text, parameters: [...attemptParameters(attempt), ...toArrays(all, numbered)] };
  };
}

const OWNERSHIP: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "epoch", sql_type: "integer" },
  { name: "revision", sql_type: "bigint" },
];

/** Columns of a session go by another name in the input: the row beside it has columns of the same. */
const ofSession = (name: string): string => `session_${name}`;
const setFromInput = (names: readonly string[]): string =>
  names.map((name) => `${name} = i.${ofSession(name)}`).join(", ");

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

/** A statement for one kind of batch: its row, null where a batch is of another kind, and the statement for many of them. */
export type SingleRowStatement = {
  toRow: (batch: Batch, plans: readonly SessionPlan[]) => Scalar[] | null;
  statement: (rows: readonly Scalar[][], attempt: WriteAttempt) => Statement;
};

/** Most commits are a step and nothing else: its session goes on by one iteration. */
export function stepStatement(tables: Tables): SingleRowStatement {
  const session = someOf(tables, "agent_state", (name) => SENT.includes(name));
  const constants = { place: OK_ROW_ORDER, status: "ok", error: null };
  const step = someOf(
    tables,
    "agent_steps",
    (name) => !(name in constants) && !OF_SESSION.includes(name) && name !== "iteration",
  );
  const sent = ["iteration", ...namesOf(step), "words"];
  const toSession = tables.encoder("agent_state", namesOf(session));
  const toStep = tables.encoder("agent_steps", namesOf(step));
  const resultAt = namesOf(session).indexOf("result");
  return {
    toRow(batch, plans) {
      const plan = plainStep(batch, plans);
      if (!plan) return null;
      const { write, before, base_iteration, context, after, last } = plan;
      const [{ step: row, stored }] = plan.steps as [SessionPlan["steps"][number]];
      const sessionValues = toSession({
        ...plan.session,
        context,
        base_iteration,
        error_rows: after.error_rows,
        spawner_id: null,
      });
      // A result that stays is not sent again.
      if (plan.session.result === last.result) sessionValues[resultAt] = null;
      const { epoch, revision } = (write as Extract<typeof write, { kind: "update" }>).owner;
      return [
        toText(plan.session.session_id),
        epoch,
        revision,
        before.iteration + 1,
        ...sessionValues,
        ...toStep({ ...row, ...stored }),
        toIndexedWords(row.text),
      ];
    },
    statement: statement(
      [
        ...OWNERSHIP,
        { name: "iteration", sql_type: "integer" },
        ...asSessionColumns(session),
        ...step,
        { name: "words", sql_type: "tsvector" },
      ],
      {
        set: setByStep(namesOf(session)),
        when: "s.iteration = i.iteration - 1",
        into: "agent_steps",
        constants,
        sent,
        reason: "'fenced'",
      },
    ),
  };
}

/** What a step changes of its session. */
const setByStep = (columns: string[]): string =>
  [
    setFromInput(columns.filter((name) => name !== "result")),
    `result = coalesce(i.${ofSession("result")}, s.result)`,
    ...CLEARED.map((name) => `${name} = null`),
    "iteration = i.iteration, step_token = i.step_token, next_step_token = i.next_step_token",
    "updated_at = i.created_at, base_iteration = i.base_iteration, context = null",
    `search_is_stale = s.search_is_stale or i.${ofSession("result")} is not null`,
  ].join(", ");

/** The plan of a batch that is a step and nothing else; null where it is more, or where its session rests from now on. */
function plainStep(batch: Batch, plans: readonly SessionPlan[]): SessionPlan | null {
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
    onlyChanges(last, session, (name) => (SESSION_IN_STEP[name] ?? "unchanged") !== "unchanged");
  return goesOn ? plan : null;
}

/**
 * A request that takes effect as it is written, and changes only whether its session goes on: a pause, a resume. The
 * statement is small, because somebody waits for it.
 */
export function controlStatement(tables: Tables): SingleRowStatement {
  const session = someOf(tables, "agent_state", (name) => (STATUS_FIELDS as readonly string[]).includes(name)).map(
    // Its default is for steps.
    ({ name, sql_type }) => ({ name, sql_type }),
  );
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
      const { write, last, steps, context, base_iteration, after } = plan;
      if (write.kind === "create" || steps.length > 0 || !isLive(plan.session.status)) return null;
      if (settled.session_id !== plan.session.session_id || !isSettled(settled)) return null;
      if (!onlyChanges(last, plan.session, (name) => name === "context" || STATUS_FIELDS.includes(name as "status")))
        return null;
      return [
        toText(plan.session.session_id),
        write.owner.epoch,
        write.owner.revision,
        plan.session.iteration,
        ...toSession({ ...plan.session, context, base_iteration, error_rows: after.error_rows, spawner_id: null }),
        ...toAction(settled),
      ];
    },
    statement: statement(
      [...OWNERSHIP, { name: "session_iteration", sql_type: "integer" }, ...asSessionColumns(session), ...action],
      {
        set: setFromInput(namesOf(session)),
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

/** Whether nothing of a session changed but what may: a field that nobody thought of counts as one that may not. */
const onlyChanges = (last: Session, session: Session, mayChange: (name: keyof Session) => boolean): boolean =>
  (Object.keys(session) as (keyof Session)[]).every((name) => session[name] === last[name] || mayChange(name));

/** Whether a batch has more than sessions, steps and actions. */
const hasOtherRows = ({ messages, cursors, participants, conversations, agent_configs }: Batch): boolean =>
  [messages, cursors, participants, conversations, agent_configs].some((rows) => rows && rows.length > 0);
