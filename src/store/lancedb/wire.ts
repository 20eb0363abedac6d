import { type ErrorCode, EverstepError } from "../../domain/errors.ts";
import type { CommitOutcome } from "../store.ts";
import type { PackedRow } from "./packed-rows.ts";

/** A batch as it crosses to the journal's thread: rows packed, states as stored. */
export type WireBatch = Partial<{
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
  /** JSON text, written once. */
  params?: string;
  /** JSON text; written where it cannot be rebuilt from steps: at the start and at the end of a session. */
  context?: string;
};

export type WireOutcome =
  | Exclude<CommitOutcome, { kind: "fenced" | "overtakes" }>
  | { kind: "failed"; error: PackedError };

/** How many rows of a batch will be moved into LanceDB. */
export const historyRows = ({ agent_steps = [], conversation_messages = [], actions = [] }: WireBatch): number =>
  agent_steps.length + conversation_messages.length + actions.filter(({ final }) => final).length;

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
