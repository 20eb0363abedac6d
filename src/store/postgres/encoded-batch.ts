import type { Action } from "../../domain/action.ts";
import { isLive } from "../../domain/session.ts";
import type { Batch, SessionWrite } from "../store.ts";
import { toControlRow } from "./control-statement.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import { toStepRow } from "./step-statement.ts";
import { LAST_PLACE, type TableName, toValues } from "./tables.ts";
import { type Scalar, toQuestion, toText } from "./values.ts";
import { toIndexedWords } from "./words.ts";

/** A batch as values for the commit statement. What the caller does to its rows afterwards does not reach it. */
export type EncodedBatch = BatchContent & {
  /** What it writes. Two batches that write the same thing are not written by one statement. */
  keys: string[];
  /** Sessions, conversations and agents that it concerns: what concerns the same is written one after the other. */
  scopes: string[];
  characters: number;
};
/** A batch that is a step and nothing else, or a request that takes effect at once, has a statement of its own. */
type BatchContent = { kind: "step" | "control"; row: Scalar[] } | ({ kind: "rows" } & BatchRows);
export type BatchRows = { rows: Partial<Record<TableName, Scalar[][]>> };

/** What stands before the table's own columns, for each table that has more to tell. */
export const EXTRA_COLUMNS = {
  agent_state: [
    ["is_new", "boolean"],
    ["owner", "text"],
    ["epoch", "integer"],
    ["revision", "bigint"],
    ["keeps_owner", "boolean"],
    ["from_iteration", "integer"],
    ["error_rows", "integer"],
    ["base_iteration", "integer"],
    ["context", "json"],
    ["question", "text"],
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
    ["may_claim", "boolean"],
    ["is_birth", "boolean"],
    ["only_if_queue_empty", "boolean"],
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

/** What is known here of the queue. */
export type ActionsKnown = {
  /** Whether the action was handed out here and not committed since. */
  isClaimed: (action_id: string) => boolean;
  /** Whether the action may be handed out here as soon as it is written. */
  mayClaim: (action: Action) => boolean;
};

const ROW_KINDS = [
  ["step", toStepRow],
  ["control", toControlRow],
] as const;

export function encode(batch: Batch, plans: SessionPlan[], known: ActionsKnown): EncodedBatch {
  for (const [kind, toRow] of ROW_KINDS) {
    const row = toRow(batch, plans);
    if (!row) continue;
    const scope = sessionScope((plans[0] as SessionPlan).session);
    return { kind, row, keys: [scope], scopes: [scope], characters: lengthOf(row) };
  }
  const rows: BatchRows["rows"] = {};
  const keys: string[] = [];
  const scopes: string[] = [];
  let characters = 0;
  const add = (table: TableName, key: string, scope: string, values: Scalar[]): void => {
    (rows[table] ??= []).push(values);
    keys.push(`${table} ${key}`);
    scopes.push(scope);
    characters += lengthOf(values);
  };
  const births = new Set(plans.flatMap(({ write }) => (isBirth(write) ? [write.session.created_action_id] : [])));
  const withSession = plans.some(({ write }) => write.kind === "update");
  for (const plan of plans) {
    const { session } = plan.write;
    add("agent_state", session.session_id, sessionScope(session), [
      ...sessionExtras(plan),
      ...toValues("agent_state", session, leftOutOf(plan)),
    ]);
    // Who writes the session's row is the only one to write its steps.
    if (plan.steps.length > 0) rows.agent_steps ??= [];
    for (const { step, stored, error_number } of plan.steps) {
      const stepValues = [
        error_number ?? LAST_PLACE,
        stored.state,
        stored.state_kind,
        stored.base_iteration,
        toIndexedWords(step.text),
        ...toValues("agent_steps", step),
      ];
      characters += lengthOf(stepValues);
      rows.agent_steps?.push(stepValues);
    }
  }
  for (const action of lastOf(batch.actions, ({ action_id }) => action_id))
    add("queue", action.action_id, sessionScope(action), [
      withSession,
      known.isClaimed(action.action_id),
      known.mayClaim(action),
      births.has(action.action_id),
      batch.only_if_queue_empty ?? false,
      ...toValues("queue", action),
    ]);
  for (const [ordinal, message] of (batch.messages ?? []).entries())
    add("conversation_messages", message.message_id, conversationScope(message), [
      ordinal,
      toIndexedWords(message.text),
      ...toValues("conversation_messages", message),
    ]);
  for (const { kind, conversation } of batch.conversations ?? [])
    add("conversations", conversation.conversation_id, conversationScope(conversation), [
      kind === "create",
      ...toValues("conversations", conversation),
    ]);
  for (const row of lastOf(batch.participants, ({ participant_id }) => participant_id))
    add(
      "conversation_participants",
      row.participant_id,
      conversationScope(row),
      toValues("conversation_participants", row),
    );
  for (const row of lastOf(batch.cursors, cursorKey))
    add("session_cursors", cursorKey(row), sessionScope(row), toValues("session_cursors", row));
  for (const row of lastOf(batch.agent_configs, ({ agent_id }) => agent_id))
    add("agent_config", row.agent_id, `agent ${row.agent_id}`, toValues("agent_config", row));
  return { kind: "rows", rows, keys, scopes, characters };
}

function lengthOf(values: readonly Scalar[]): number {
  let characters = 0;
  for (const value of values) characters += typeof value === "string" ? value.length : 4;
  return characters;
}

/** A session that is created as a worker's own: its first action is the worker's too. */
const isBirth = (write: SessionWrite): boolean => write.kind === "create" && write.worker !== null;

const sessionScope = ({ session_id }: { session_id: string }): string => `session ${session_id}`;
const conversationScope = ({ conversation_id }: { conversation_id: string }): string =>
  `conversation ${conversation_id}`;

/** Columns of a session that never change after its creation. */
export const KEPT: ReadonlySet<string> = new Set([
  "agent_id",
  "conversation_id",
  "moniker",
  "params",
  "created_action_id",
  "parent_session_id",
  "parent_iteration",
  "created_at",
]);
const KEPT_AND_OPTIONS: ReadonlySet<string> = new Set([...KEPT, "options"]);

const leftOutOf = ({ write, session, last }: SessionPlan): ReadonlySet<string> | undefined =>
  write.kind === "create" ? undefined : session.options === last.options ? KEPT_AND_OPTIONS : KEPT;

function sessionExtras({ write, session, before, after, base_iteration, context }: SessionPlan): Scalar[] {
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
    after.error_rows,
    base_iteration,
    context,
    toQuestion(session),
  ];
}

/** One row for each key: the last one, as if they were written one after the other. */
function lastOf<Value>(rows: Value[] | undefined, key: (row: Value) => string): Value[] {
  return rows ? [...new Map(rows.map((row) => [key(row), row])).values()] : [];
}

const cursorKey = ({ session_id, conversation_id }: { session_id: string; conversation_id: string }): string =>
  `${session_id}\u0000${conversation_id}`;
