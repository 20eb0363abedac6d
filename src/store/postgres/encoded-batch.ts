import { isLive } from "../../domain/session.ts";
import type { Batch } from "../store.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import { type TableName, toValues } from "./tables.ts";
import { type Scalar, toText } from "./values.ts";
import { toIndexedWords } from "./words.ts";

/** A batch as values for the commit statement. What the caller does to its rows afterwards does not reach it. */
export type EncodedBatch = {
  rows: Partial<Record<TableName, Scalar[][]>>;
  /** What it writes. Two batches that write the same thing are not written by one statement. */
  keys: string[];
  characters: number;
};

/** What stands before the table's own columns, for each table that has more to tell. */
export const EXTRA_COLUMNS = {
  agent_state: [
    ["is_new", "boolean"],
    ["owner", "text"],
    ["epoch", "integer"],
    ["keeps_owner", "boolean"],
    ["from_iteration", "integer"],
    ["error_rows", "integer"],
    ["base_iteration", "integer"],
    ["context", "json"],
  ],
  agent_steps: [
    ["place", "integer"],
    ["state", "json"],
    ["state_kind", "text"],
    ["base_iteration", "integer"],
    ["words", "tsvector"],
  ],
  queue: [
    ["with_session", "boolean"],
    ["was_claimed", "boolean"],
  ],
  conversations: [["is_new", "boolean"]],
  conversation_messages: [
    ["ordinal", "integer"],
    ["words", "tsvector"],
  ],
  conversation_participants: [],
  session_cursors: [],
  agent_config: [],
} as const satisfies Record<TableName, readonly (readonly [string, string])[]>;

/** The place of the row that succeeded: after every attempt that failed. */
export const LAST_PLACE = 2_147_483_647;

export function encode(batch: Batch, plans: SessionPlan[], wasClaimed: (action_id: string) => boolean): EncodedBatch {
  const rows: EncodedBatch["rows"] = {};
  const keys: string[] = [];
  let characters = 0;
  const add = (table: TableName, key: string, values: Scalar[]): void => {
    (rows[table] ??= []).push(values);
    keys.push(`${table} ${key}`);
    for (const value of values) characters += typeof value === "string" ? value.length : 4;
  };
  const withSession = plans.some(({ write }) => write.kind === "update");
  for (const plan of plans) {
    const { session } = plan.write;
    add("agent_state", session.session_id, [...sessionExtras(plan), ...toValues("agent_state", session)]);
    for (const { step, stored, error_number } of plan.steps)
      add("agent_steps", `${step.session_id} ${step.id}`, [
        error_number ?? LAST_PLACE,
        stored.state,
        stored.state_kind,
        stored.base_iteration,
        toIndexedWords(step.text),
        ...toValues("agent_steps", step),
      ]);
  }
  for (const action of lastOf(batch.actions, ({ action_id }) => action_id))
    add("queue", action.action_id, [withSession, wasClaimed(action.action_id), ...toValues("queue", action)]);
  for (const [ordinal, message] of (batch.messages ?? []).entries())
    add("conversation_messages", message.message_id, [
      ordinal,
      toIndexedWords(message.text),
      ...toValues("conversation_messages", message),
    ]);
  for (const { kind, conversation } of batch.conversations ?? [])
    add("conversations", conversation.conversation_id, [kind === "create", ...toValues("conversations", conversation)]);
  for (const row of lastOf(batch.participants, ({ participant_id }) => participant_id))
    add("conversation_participants", row.participant_id, toValues("conversation_participants", row));
  for (const row of lastOf(batch.cursors, cursorKey))
    add("session_cursors", cursorKey(row), toValues("session_cursors", row));
  for (const row of lastOf(batch.agent_configs, ({ agent_id }) => agent_id))
    add("agent_config", row.agent_id, toValues("agent_config", row));
  return { rows, keys, characters };
}

function sessionExtras({ write, before, after, base_iteration, context }: SessionPlan): Scalar[] {
  const isNew = write.kind === "create";
  const owner = isNew ? write.worker : write.owner.worker;
  const keepsOwner = owner !== null && isLive(write.session.status);
  return [
    isNew,
    owner === null ? null : toText(owner),
    isNew ? (owner === null ? 0 : 1) : write.owner.epoch,
    keepsOwner,
    before.iteration,
    after.error_rows,
    base_iteration,
    context,
  ];
}

/** One row for each key: the last one, as if they were written one after the other. */
function lastOf<Value>(rows: Value[] | undefined, key: (row: Value) => string): Value[] {
  return rows ? [...new Map(rows.map((row) => [key(row), row])).values()] : [];
}

const cursorKey = ({ session_id, conversation_id }: { session_id: string; conversation_id: string }): string =>
  `${session_id}\u0000${conversation_id}`;
