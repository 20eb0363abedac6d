import type { Action } from "../../domain/action.ts";
import { isLive } from "../../domain/session.ts";
import type { QueuedBatch } from "../commit-queue.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import { BATCH_TABLES, type BatchTable } from "../schema.ts";
import type { Batch, SessionWrite } from "../store.ts";
import {
  attemptParameters,
  controlStatement,
  DEFAULT_VALUES,
  FIRST_FREE_PARAMETER,
  fromArrays,
  groupText,
  IMMUTABLE_COLUMNS,
  OK_ROW_ORDER,
  type SingleRowStatement,
  type Statement,
  stepStatement,
  toArrays,
  type WriteAttempt,
} from "./single-row-statements.ts";
import { type InputColumn, type Scalar, type Tables, toIndexedWords, toText } from "./tables.ts";

/** A batch as values for its statement. Later changes to the caller's rows do not affect it. */
export type EncodedBatch = QueuedBatch & BatchContent;
/** A batch that is only a step, or a request that takes effect at once, has a statement of its own. */
type BatchContent = { kind: "step" | "control"; row: Scalar[] } | { kind: "rows"; rows: BatchRows };
type BatchRows = Partial<Record<BatchTable, Scalar[][]>>;

/** What this process knows of the queue. */
export type ActionsKnown = {
  /** Whether the action was handed out here and not committed since. */
  isClaimed: (action: Action) => boolean;
  /** Whether the action may be handed out here as soon as it is written. */
  mayClaim: (action: Action) => boolean;
};

/** Input columns that precede the table's own. */
const EXTRA_COLUMNS: Readonly<Record<BatchTable, readonly InputColumn[]>> = {
  agent_state: [
    { name: "is_new", sql_type: "boolean", default_value: false },
    { name: "owner", sql_type: "text" },
    { name: "epoch", sql_type: "integer" },
    { name: "revision", sql_type: "bigint" },
    { name: "keeps_owner", sql_type: "boolean", default_value: true },
    { name: "from_iteration", sql_type: "integer" },
  ],
  agent_steps: [
    { name: "place", sql_type: "integer", default_value: OK_ROW_ORDER },
    { name: "words", sql_type: "tsvector" },
  ],
  queue: [
    { name: "with_session", sql_type: "boolean", default_value: false },
    { name: "was_claimed", sql_type: "boolean", default_value: false },
    { name: "may_claim", sql_type: "boolean", default_value: false },
    { name: "is_preclaimed", sql_type: "boolean", default_value: false },
    { name: "only_if_queue_empty", sql_type: "boolean", default_value: false },
  ],
  conversations: [{ name: "is_new", sql_type: "boolean" }],
  conversation_messages: [
    { name: "ordinal", sql_type: "integer" },
    { name: "words", sql_type: "tsvector" },
  ],
  conversation_participants: [],
  session_cursors: [],
  agent_config: [],
};

/** Sessions come first: whether they may be written decides about the rest of their batch. */
const TABLE_ORDER: readonly BatchTable[] = BATCH_TABLES;
/** The tables of most groups: a request, what it does to a session, a session's last step, a step that was guided. */
const COMMON_TABLES: BatchTable[][] = [
  ["agent_state", "queue"],
  ["queue"],
  ["agent_state", "agent_steps"],
  ["agent_state", "agent_steps", "queue"],
];

/** How batches are encoded, and the statements that write groups of them. */
export class BatchStatements {
  readonly #tables: Tables;
  readonly #single: Readonly<Record<"step" | "control", SingleRowStatement>>;
  readonly #columns: Readonly<Record<BatchTable, readonly InputColumn[]>>;
  /** By the tables that a group writes. */
  readonly #texts = new Map<string, string>();

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#single = { step: stepStatement(tables), control: controlStatement(tables) };
    const columns = BATCH_TABLES.map((table): [BatchTable, InputColumn[]] => [
      table,
      [
        { name: "batch", sql_type: "integer" },
        ...EXTRA_COLUMNS[table],
        ...tables.input(table).map((column) => ({ ...column, default_value: DEFAULT_VALUES[table]?.[column.name] })),
      ],
    ]);
    this.#columns = Object.fromEntries(columns) as Record<BatchTable, InputColumn[]>;
  }

  encode(batch: Batch, plans: readonly SessionPlan[], actions: ActionsKnown): EncodedBatch {
    for (const kind of ["step", "control"] as const) {
      const row = this.#single[kind].toRow(batch, plans);
      if (!row) continue;
      const scope = sessionScope((plans[0] as SessionPlan).session);
      return { kind, row, keys: [scope], scopes: [scope], characters: lengthOf(row) };
    }
    return this.#encodeRows(batch, plans, actions);
  }

  /** All batches are of one kind. */
  statement(batches: readonly EncodedBatch[], attempt: WriteAttempt): Statement {
    const kind = batches[0]?.kind;
    if (batches.some((batch) => batch.kind !== kind))
      throw new TypeError("batches of several kinds were given together");
    if (kind === undefined || kind === "rows")
      return this.#groupStatement(
        batches.flatMap((batch) => (batch.kind === "rows" ? [batch.rows] : [])),
        attempt,
      );
    return this.#single[kind].statement(
      batches.flatMap((batch) => (batch.kind === "rows" ? [] : [batch.row])),
      attempt,
    );
  }

  /** The statements that most groups use, with nothing to write. */
  common(attempt: WriteAttempt): Statement[] {
    return [
      ...Object.values(this.#single).map(({ statement }) => statement([], attempt)),
      ...COMMON_TABLES.map((tables) =>
        this.#groupStatement([Object.fromEntries(tables.map((table) => [table, []]))], attempt),
      ),
    ];
  }

  #encodeRows(batch: Batch, plans: readonly SessionPlan[], actions: ActionsKnown): EncodedBatch {
    const tables = this.#tables;
    const encoded = new RowsOfBatch();
    const preclaimed = new Set(
      plans.flatMap(({ write }) => (isCreatedOwned(write) ? [write.session.created_action_id] : [])),
    );
    const withSession = plans.some(({ write }) => write.kind === "update");
    for (const plan of plans) this.#encodeSession(plan, encoded);
    for (const action of lastOf(batch.actions, ({ action_id }) => action_id))
      encoded.add("queue", action.action_id, sessionScope(action), [
        withSession,
        actions.isClaimed(action),
        actions.mayClaim(action),
        preclaimed.has(action.action_id),
        batch.only_if_queue_empty ?? false,
        ...tables.toValues("queue", action),
      ]);
    for (const [ordinal, message] of (batch.messages ?? []).entries())
      encoded.add("conversation_messages", message.message_id, conversationScope(message), [
        ordinal,
        toIndexedWords(message.text),
        ...tables.toValues("conversation_messages", message),
      ]);
    for (const { kind, conversation } of batch.conversations ?? [])
      encoded.add("conversations", conversation.conversation_id, conversationScope(conversation), [
        kind === "create",
        ...tables.toValues("conversations", conversation),
      ]);
    for (const row of lastOf(batch.participants, ({ participant_id }) => participant_id)) {
      const values = tables.toValues("conversation_participants", row);
      encoded.add("conversation_participants", row.participant_id, conversationScope(row), values);
    }
    for (const row of lastOf(batch.cursors, cursorKey))
      encoded.add("session_cursors", cursorKey(row), sessionScope(row), tables.toValues("session_cursors", row));
    for (const row of lastOf(batch.agent_configs, ({ agent_id }) => agent_id))
      encoded.add("agent_config", row.agent_id, `agent ${row.agent_id}`, tables.toValues("agent_config", row));
    const { rows, keys, scopes, characters } = encoded;
    return { kind: "rows", rows, keys, scopes, characters };
  }

  #encodeSession(plan: SessionPlan, encoded: RowsOfBatch): void {
    const { write, session, last, context, base_iteration, after } = plan;
    const spawner_id = session.spawned_by?.session_id ?? null;
    const row = { ...session, context, base_iteration, error_rows: after.error_rows, spawner_id };
    const leftOut =
      write.kind === "create" ? undefined : session.options === last.options ? LEFT_OUT_WITH_OPTIONS : LEFT_OUT;
    encoded.add("agent_state", session.session_id, sessionScope(session), [
      ...sessionExtras(plan),
      ...this.#tables.toValues("agent_state", row, leftOut),
    ]);
    // No key of their own: only the writer of the session's row writes its steps.
    for (const { step, stored, error_number } of plan.steps)
      encoded.addRow("agent_steps", [
        error_number ?? OK_ROW_ORDER,
        toIndexedWords(step.text),
        ...this.#tables.toValues("agent_steps", { ...step, ...stored }),
      ]);
  }

  #groupStatement(batches: readonly BatchRows[], attempt: WriteAttempt): Statement {
    const present = TABLE_ORDER.filter((table) => batches.some((rows) => rows[table]));
    const key = present.join(" ");
    const text = this.#texts.get(key) ?? groupStatementText(this.#tables, this.#columns, present);
    this.#texts.set(key, text);
    const parameters: Scalar[] = attemptParameters(attempt);
    for (const table of present) {
      const rows = batches.flatMap((batch, index) => (batch[table] ?? []).map((row) => [index, ...row]));
      parameters.push(...toArrays(this.#columns[table], rows));
    }
    return { text, parameters };
  }
}

/** The rows of a batch as they are collected. */
class RowsOfBatch {
  readonly rows: BatchRows = {};
  readonly keys: string[] = [];
  readonly scopes: string[] = [];
  characters = 0;

  add(table: BatchTable, key: string, scope: string, values: Scalar[]): void {
    this.addRow(table, values);
    this.keys.push(`${table} ${key}`);
    this.scopes.push(scope);
  }

  addRow(table: BatchTable, values: Scalar[]): void {
    (this.rows[table] ??= []).push(values);
    this.characters += lengthOf(values);
  }
}

function lengthOf(values: readonly Scalar[]): number {
  let characters = 0;
  for (const value of values) characters += typeof value === "string" ? value.length : 4;
  return characters;
}

/** A session that is created as a worker's own: its first action is the worker's too. */
const isCreatedOwned = (write: SessionWrite): boolean => write.kind === "create" && write.worker !== null;

const sessionScope = ({ session_id }: { session_id: string }): string => `session ${session_id}`;
const conversationScope = ({ conversation_id }: { conversation_id: string }): string =>
  `conversation ${conversation_id}`;

/** An update finds the session by its id; its other immutable columns are not sent again. */
const LEFT_OUT: ReadonlySet<string> = new Set([...IMMUTABLE_COLUMNS].filter((name) => name !== "session_id"));
const LEFT_OUT_WITH_OPTIONS: ReadonlySet<string> = new Set([...LEFT_OUT, "options"]);

function sessionExtras({ write, before }: SessionPlan): Scalar[] {
  const isNew = write.kind === "create";
  const owner = isNew ? write.worker : write.owner.worker;
  const keepsOwner = owner !== null && isLive(write.session.status);
  return [
    isNew,
    isNew && owner !== null ? toText(owner) : null,
    isNew ? (owner === null ? 0 : 1) : write.owner.epoch,
    isNew ? 0 : write.owner.revision,
    keepsOwner,
    before.iteration,
  ];
}

/** Keeps the last row of each key, as if the rows were written one after the other. */
function lastOf<Value>(rows: Value[] | undefined, key: (row: Value) => string): Value[] {
  return rows ? [...new Map(rows.map((row) => [key(row), row])).values()] : [];
}

const cursorKey = ({ session_id, conversation_id }: { session_id: string; conversation_id: string }): string =>
  `${session_id}\u0000${conversation_id}`;

/**
 * One statement for many batches, so that they share one round trip and one sync.
 *
 * BATCH-1  It locks the sessions and actions that it writes, then checks every batch, then writes those that passed: a batch is
 *          written whole or not at all.
 * BATCH-2  It claims a new action for this process if the action is the only pending one of a session that this process owns, or
 *          creates a session as this process's own. When it ends an action, it tells whether the session has another. So the queue
 *          rarely has to be read.
 *
 * No two batches of a group write the same key, so the statement writes no row twice.
 */
function groupStatementText(
  tables: Tables,
  columns: Readonly<Record<BatchTable, readonly InputColumn[]>>,
  present: readonly BatchTable[],
): string {
  const parts: string[] = [];
  let next = FIRST_FREE_PARAMETER;
  for (const table of present) {
    parts.push(`new_${table} as materialized (${fromArrays(columns[table], next)})`);
    next += columns[table].length;
  }
  const has = (table: BatchTable): boolean => present.includes(table);
  if (has("agent_state")) parts.push(LOCKED_SESSIONS);
  if (has("queue")) parts.push(LOCKED_ACTIONS);
  const refusals = present.flatMap((table) => REFUSALS[table] ?? []);
  const nothing = "select 0 as batch, ''::text as reason, ''::text as id where false";
  parts.push(`refused as materialized (${refusals.length > 0 ? refusals.join(" union all ") : nothing})`);
  const write = writesTo(tables);
  for (const table of present) parts.push(write[table]);
  return groupText(parts, [
    ...(has("conversation_messages") ? ["select 'message', 0, '', message_id, number from write_messages"] : []),
    ...(has("queue") ? [CLAIMED, MORE] : []), // BATCH-2
  ]);
}

/** True for batches that passed the checks, as long as the writer's attempt is current. */
const PASSED = "exists (select 1 from gate) and i.batch <> all (array(select batch from refused))";

const LOCKED_SESSIONS = `locked_sessions as materialized (
  select i.batch, i.session_id, i.is_new,
    coalesce(s.node_no = $1 and s.epoch = i.epoch and s.revision = i.revision and s.iteration = i.from_iteration, false)
      as is_owned
  from new_agent_state i join agent_state s on s.session_id = i.session_id
  order by i.session_id for update of s)`;

/**
 * An action that was claimed here must still be claimed here. An action that ended changes only together with its session and only
 * forward: it cannot end twice or be consumed twice.
 */
const LOCKED_ACTIONS = `locked_actions as materialized (
  select i.batch, i.session_id,
    (i.was_claimed and q.claimed_by is distinct from $1)
      or (q.processed and (not i.with_session or i.receipt = q.receipt))
      or (not i.with_session and coalesce(q.claimed_by <> $1, false)) as is_lost
  from new_queue i join queue q on q.action_id = i.action_id
  order by i.action_id for update of q)`;

const REFUSALS: Partial<Record<BatchTable, string[]>> = {
  agent_state: [
    "select batch, 'fenced' as reason, session_id as id from locked_sessions where not is_new and not is_owned",
    `select i.batch, 'fenced', i.session_id from new_agent_state i
       where not i.is_new and not exists (select 1 from agent_state s where s.session_id = i.session_id)`,
    "select batch, 'agent_state', session_id from locked_sessions where is_new",
  ],
  queue: [
    "select batch, 'fenced' as reason, session_id as id from locked_actions where is_lost",
    `select i.batch, 'queue_not_empty', i.session_id from new_queue i
       where i.only_if_queue_empty and exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)`,
  ],
  conversations: [
    `select i.batch, 'conversations' as reason, i.conversation_id as id from new_conversations i
       where i.is_new and exists (select 1 from conversations c where c.conversation_id = i.conversation_id)`,
  ],
  conversation_messages: [
    `select i.batch, 'conversation_messages' as reason, i.message_id as id from new_conversation_messages i
       where exists (select 1 from conversation_messages m where m.message_id = i.message_id)
         or exists (select 1 from archived_messages m where m.message_id = i.message_id)`,
  ],
};

const IS_ALONE = `i.may_claim
    and exists (select 1 from agent_state s where s.session_id = i.session_id and s.node_no = $1)
    and not exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)
    and not exists (select 1 from new_queue o where o.session_id = i.session_id and not o.processed and o.action_id <> i.action_id)`;
const CLAIMED = "select 'claimed', 0, '', action_id, 0 from write_actions where claimed_by is not null";
const MORE = `select 'more', 0, '', i.session_id, 0 from (select distinct session_id from new_queue where processed) i where exists (
  select 1 from queue q where q.session_id = i.session_id and not q.processed
    and q.action_id not in (select action_id from new_queue where processed))`;

/** How an update sets a session's column, where not simply from the input. */
const SESSION_UPDATES: Readonly<Record<string, string>> = {
  options: "coalesce(i.options, s.options)",
  context: "case when i.base_iteration is null then coalesce(i.context, s.context) end",
};

function writesTo(tables: Tables): Record<BatchTable, string> {
  const inputNames = (table: BatchTable): string =>
    tables
      .names(table)
      .map((name) => `i.${name}`)
      .join(", ");
  const insert = (table: BatchTable, more = "", values = more): string =>
    `insert into ${table} (${tables.names(table).join(", ")}${more}) select ${inputNames(table)}${values} from new_${table} i where ${PASSED}`;
  const replaceBy = (table: BatchTable, key: string, more = ""): string =>
    `on conflict (${key}) do update set ${tables
      .names(table)
      .filter((name) => !key.split(", ").includes(name))
      .map((name) => `${name} = excluded.${name}`)
      .join(", ")}${more}`;
  const sessionChanges = tables
    .names("agent_state")
    .filter((name) => !IMMUTABLE_COLUMNS.has(name))
    .map((name) => `${name} = ${SESSION_UPDATES[name] ?? `i.${name}`}`)
    .join(", ");
  return {
    agent_state: `create_sessions as (${insert(
      "agent_state",
      ", owner, node_no, epoch",
      ", case when i.keeps_owner then i.owner end, case when i.keeps_owner then $1 end, i.epoch",
    )} and i.is_new),
update_sessions as (update agent_state s set ${sessionChanges},
    owner = case when i.keeps_owner then s.owner end, node_no = case when i.keeps_owner then s.node_no end,
    revision = s.revision + 1, owner_died = false,
    search_is_stale = s.search_is_stale or s.result is distinct from i.result
  from new_agent_state i where s.session_id = i.session_id and not i.is_new and ${PASSED})`,
    agent_steps: `write_steps as (${insert("agent_steps", ", place, words", ", i.place, i.words")})`,
    queue: `write_actions as (${insert("queue", ", claimed_by", `, case when i.is_preclaimed or (${IS_ALONE}) then $1 end`)}
  ${replaceBy("queue", "action_id", ", claimed_by = null")} returning action_id, claimed_by)`,
    conversations: `write_conversations as (${insert("conversations")} order by i.conversation_id ${replaceBy("conversations", "conversation_id")})`,
    conversation_messages: `message_counts as (
  insert into conversation_numbers (conversation_id, last_number)
    select i.conversation_id, count(*) from new_conversation_messages i where ${PASSED}
    group by i.conversation_id order by i.conversation_id
  on conflict (conversation_id) do update set last_number = conversation_numbers.last_number + excluded.last_number
  returning conversation_id, last_number),
write_messages as (
  insert into conversation_messages (${tables.names("conversation_messages").join(", ")}, words, number)
    select ${inputNames("conversation_messages")}, i.words,
      c.last_number + 1 - row_number() over (partition by i.conversation_id order by i.batch desc, i.ordinal desc)
    from new_conversation_messages i join message_counts c on c.conversation_id = i.conversation_id where ${PASSED}
  returning conversation_id, message_id, number)`,
    conversation_participants: `write_participants as (${insert("conversation_participants")} order by i.participant_id ${replaceBy("conversation_participants", "participant_id")})`,
    session_cursors: `write_cursors as (${insert("session_cursors")} order by i.session_id ${replaceBy("session_cursors", "session_id, conversation_id")})`,
    agent_config: `write_configs as (${insert("agent_config")} order by i.agent_id ${replaceBy("agent_config", "agent_id")})`,
  };
}
