import { type BatchRows, EXTRA_COLUMNS, KEPT } from "./encoded-batch.ts";
import { fromArrays, type InputColumn, toArrays } from "./input-columns.ts";
import { inputColumns, LAST_PLACE, type TableName } from "./tables.ts";
import type { Scalar } from "./values.ts";
import { FIRST_FREE_PARAMETER, groupText, type Statement, type WriterPlace, writerParameters } from "./writer-place.ts";

/**
 * One statement for many batches, so that one round trip and one write to disk carry all of them.
 *
 * G1  The sessions and actions that it writes are locked first, then every batch is judged, then those that passed are
 *     written: a batch goes through whole or leaves nothing.
 * G2  A new action that is the only one of a session of this process is claimed by the statement that writes it, and so is
 *     the one that creates a session as this process's own. The end of an action tells whether its session has another. So
 *     mostly no look into the queue is needed.
 *
 * No two batches of a group write the same thing, so no row is written twice by the statement.
 */
export function groupStatement(batches: readonly BatchRows[], writer: WriterPlace): Statement {
  const present = TABLE_ORDER.filter((table) => batches.some(({ rows }) => rows[table]));
  const key = present.join(" ");
  const text = texts.get(key) ?? build(present);
  texts.set(key, text);
  const parameters: Scalar[] = writerParameters(writer);
  for (const table of present) {
    const rows = batches.flatMap((batch, index) => (batch.rows[table] ?? []).map((row) => [index, ...row]));
    parameters.push(...toArrays(COLUMNS[table], rows));
  }
  return { text, parameters };
}

const TABLE_ORDER = Object.keys(EXTRA_COLUMNS) as TableName[];
const texts = new Map<string, string>();

/** See `InputColumn`. */
const USUAL: Partial<Record<TableName, Readonly<Record<string, Scalar>>>> = {
  agent_state: {
    is_new: false,
    keeps_owner: true,
    error_rows: 0,
    status: "running",
    pending_guidance: "[]",
    pending_action_ids: "[]",
    tokens_used: 0,
  },
  agent_steps: { place: LAST_PLACE, status: "ok", guidance: "[]", action_ids: "[]", tokens_used: 0 },
  queue: {
    with_session: false,
    was_claimed: false,
    may_claim: false,
    is_birth: false,
    only_if_queue_empty: false,
    metadata: "{}",
    urgency: 0,
    attempts: 0,
  },
};

const COLUMNS = Object.fromEntries(
  TABLE_ORDER.map((table): [TableName, InputColumn[]] => {
    const extra = EXTRA_COLUMNS[table].map(([name, sql_type]) => ({ name, sql_type }));
    const columns = [{ name: "batch", sql_type: "integer" }, ...extra, ...inputColumns(table)];
    return [table, columns.map((column) => ({ ...column, usual: USUAL[table]?.[column.name] }))];
  }),
) as Record<TableName, InputColumn[]>;

function build(present: TableName[]): string {
  const parts: string[] = [];
  let next = FIRST_FREE_PARAMETER;
  for (const table of present) {
    parts.push(`new_${table} as materialized (${fromArrays(COLUMNS[table], next)})`);
    next += COLUMNS[table].length;
  }
  const has = (table: TableName): boolean => present.includes(table);
  if (has("agent_state")) parts.push(LOCKED_SESSIONS);
  if (has("queue")) parts.push(LOCKED_ACTIONS);
  const refusals = present.flatMap((table) => REFUSALS[table] ?? []);
  const nothing = "select 0 as batch, ''::text as reason, ''::text as id where false";
  parts.push(`refused as materialized (${refusals.length > 0 ? refusals.join(" union all ") : nothing})`);
  for (const table of present) parts.push(WRITES[table]);
  return groupText(parts, [
    ...(has("conversation_messages") ? ["select 'message', 0, '', message_id, number from write_messages"] : []),
    ...(has("queue") ? [CLAIMED, MORE] : []), // G2
  ]);
}

/** Batches that passed, at a moment when this process may write. */
const PASSED = "exists (select 1 from gate) and i.batch <> all (array(select batch from refused))";

const LOCKED_SESSIONS = `locked_sessions as materialized (
  select i.batch, i.session_id, i.is_new,
    coalesce(s.node_no = $1 and s.epoch = i.epoch and s.revision = i.revision and s.iteration = i.from_iteration, false)
      as is_owned
  from new_agent_state i join agent_state s on s.session_id = i.session_id
  order by i.session_id for update of s)`;

/**
 * An action that was claimed here must still be. One that ended is only changed along with its session, and only moves on: it
 * cannot end twice, nor be used twice.
 */
const LOCKED_ACTIONS = `locked_actions as materialized (
  select i.batch, i.session_id,
    (i.was_claimed and q.claimed_by is distinct from $1)
      or (q.processed and (not i.with_session or i.receipt = q.receipt))
      or (not i.with_session and coalesce(q.claimed_by <> $1, false)) as is_lost
  from new_queue i join queue q on q.action_id = i.action_id
  order by i.action_id for update of q)`;

const REFUSALS: Partial<Record<TableName, string[]>> = {
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
       where exists (select 1 from conversation_messages m where m.message_id = i.message_id)`,
  ],
};

const names = (table: TableName): string[] => inputColumns(table).map(({ name }) => name);
const SESSION_CHANGES = names("agent_state").filter((name) => name !== "session_id" && !KEPT.has(name));

const given = (table: TableName): string =>
  names(table)
    .map((name) => `i.${name}`)
    .join(", ");
const insert = (table: TableName, more = "", values = more): string =>
  `insert into ${table} (${names(table).join(", ")}${more}) select ${given(table)}${values} from new_${table} i where ${PASSED}`;
const replaceBy = (table: TableName, key: string, more = ""): string =>
  `on conflict (${key}) do update set ${names(table)
    .filter((name) => !key.split(", ").includes(name))
    .map((name) => `${name} = excluded.${name}`)
    .join(", ")}${more}`;

const IS_ALONE = `i.may_claim
    and exists (select 1 from agent_state s where s.session_id = i.session_id and s.node_no = $1)
    and not exists (select 1 from queue q where q.session_id = i.session_id and not q.processed)
    and not exists (select 1 from new_queue o where o.session_id = i.session_id and not o.processed and o.action_id <> i.action_id)`;
const CLAIMED = "select 'claimed', 0, '', action_id, 0 from write_actions where claimed_by is not null";
const MORE = `select 'more', 0, '', i.session_id, 0 from (select distinct session_id from new_queue where processed) i where exists (
  select 1 from queue q where q.session_id = i.session_id and not q.processed
    and q.action_id not in (select action_id from new_queue where processed))`;

const WRITES: Record<TableName, string> = {
  agent_state: `create_sessions as (${insert(
    "agent_state",
    ", owner, node_no, epoch, error_rows, base_iteration, context, question",
    ", case when i.keeps_owner then i.owner end, case when i.keeps_owner then $1 end, i.epoch, i.error_rows, i.base_iteration, i.context, i.question",
  )} and i.is_new),
update_sessions as (update agent_state s set ${SESSION_CHANGES.map((name) => `${name} = ${name === "options" ? "coalesce(i.options, s.options)" : `i.${name}`}`).join(", ")},
    owner = case when i.keeps_owner then s.owner end, node_no = case when i.keeps_owner then s.node_no end,
    revision = s.revision + 1, owner_died = false, error_rows = i.error_rows, base_iteration = i.base_iteration,
    context = case when i.base_iteration is null then coalesce(i.context, s.context) end,
    question = i.question, search_is_stale = s.search_is_stale or s.result is distinct from i.result
  from new_agent_state i where s.session_id = i.session_id and not i.is_new and ${PASSED})`,
  agent_steps: `write_steps as (${insert("agent_steps", ", place, state, state_kind, base_iteration, words", ", i.place, i.state, i.state_kind, i.base_iteration, i.words")})`,
  queue: `write_actions as (${insert("queue", ", claimed_by", `, case when i.is_birth or (${IS_ALONE}) then $1 end`)}
  ${replaceBy("queue", "action_id", ", claimed_by = null")} returning action_id, claimed_by)`,
  conversations: `write_conversations as (${insert("conversations")} order by i.conversation_id ${replaceBy("conversations", "conversation_id")})`,
  conversation_messages: `message_counts as (
  insert into conversation_numbers (conversation_id, last_number)
    select i.conversation_id, count(*) from new_conversation_messages i where ${PASSED}
    group by i.conversation_id order by i.conversation_id
  on conflict (conversation_id) do update set last_number = conversation_numbers.last_number + excluded.last_number
  returning conversation_id, last_number),
write_messages as (
  insert into conversation_messages (${names("conversation_messages").join(", ")}, words, number)
    select ${given("conversation_messages")}, i.words,
      c.last_number + 1 - row_number() over (partition by i.conversation_id order by i.batch desc, i.ordinal desc)
    from new_conversation_messages i join message_counts c on c.conversation_id = i.conversation_id where ${PASSED}
  returning conversation_id, message_id, number)`,
  conversation_participants: `write_participants as (${insert("conversation_participants")} order by i.participant_id ${replaceBy("conversation_participants", "participant_id")})`,
  session_cursors: `write_cursors as (${insert("session_cursors")} order by i.session_id ${replaceBy("session_cursors", "session_id, conversation_id")})`,
  agent_config: `write_configs as (${insert("agent_config")} order by i.agent_id ${replaceBy("agent_config", "agent_id")})`,
};
