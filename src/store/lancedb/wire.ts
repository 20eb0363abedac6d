import { type ErrorCode, EverstepError } from "../../domain/errors.ts";
import type { CommitOutcome } from "../store.ts";
import type { PackedRow } from "./packed-rows.ts";

/** A batch as it crosses to the journal's thread: rows packed, states as stored. */
export type WireBatch = WireRows & {
  /** The position of its first row; the others follow. It tells whether the batch was written after the thread that had it died. */
  first: number;
};
export type WireRows = Partial<{
  sessions: WireSession[];
  agent_steps: PackedRow[];
  conversation_messages: PackedRow[];
  actions: { final: boolean; packed: PackedRow }[];
  conversations: { create: boolean; packed: PackedRow }[];
  conversation_participants: PackedRow[];
  session_cursors: PackedRow[];
  agent_config: PackedRow[];
}>;

export type WireSession = {
  create: boolean;
  packed: PackedRow;
  /** Of a session that is there already. */
  status_changed?: boolean;
  /** Of a new one: the session that started it. */
  spawner_id?: string | null;
  /** JSON text, written once. */
  params?: string;
  /** JSON text; written where it cannot be rebuilt from steps: at the start and at the end of a session. */
  context?: string;
};

export type WireOutcome =
  | Exclude<CommitOutcome, { kind: "fenced" | "queue_not_empty" }>
  | { kind: "failed"; error: PackedError };

/** How many rows a batch writes, and how many characters they are. */
export function measure({ sessions = [], actions = [], conversations = [], ...plain }: WireRows): Size {
  let rows = 0;
  let characters = 0;
  const count = ({ row }: PackedRow): void => {
    rows += 1;
    characters += row.length;
  };
  for (const { packed, params, context } of sessions) {
    count(packed);
    characters += (params?.length ?? 0) + (context?.length ?? 0);
  }
  for (const { packed } of actions) count(packed);
  for (const { packed } of conversations) count(packed);
  const { agent_steps, conversation_messages, conversation_participants, session_cursors, agent_config } = plain;
  for (const list of [agent_steps, conversation_messages, conversation_participants, session_cursors, agent_config])
    if (list) for (const packed of list) count(packed);
  return { rows, characters };
}

/** The same for the rows that will be moved into LanceDB. */
export const measureHistory = ({ agent_steps = [], conversation_messages = [], actions = [] }: WireRows): Size =>
  measure({ agent_steps, conversation_messages, actions: actions.filter(({ final }) => final) });

export type Size = { rows: number; characters: number };

/** An error as it crosses threads: only its class would be lost. */
export type PackedError = { code: ErrorCode | null; message: string; next: string; stack: string };

export function packError(error: unknown): PackedError {
  const known = error instanceof EverstepError ? error : null;
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: known?.code ?? null, message, next: known?.next ?? "", stack: stack ?? message };
}

export function unpackError({ code, message, next, stack }: PackedError): Error {
  const cause = Object.assign(new Error(message), { stack });
  if (code === null) return cause;
  const what = message.slice(code.length + 2, message.length - next.length - 2);
  return new EverstepError(code, what, next, cause);
}
