import type { CommittedEvent } from "../../domain/event.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { Store } from "../../store/store.ts";

const PAGE = 100;
/** If more sessions changed, rereading lists is cheaper than replaying each change. */
const MOST_SESSIONS = 10_000;
/** Conversations are not sorted by their last message, so each is checked. */
const MOST_CONVERSATIONS = 500;

/** Tables that cannot be replayed and must be read again. */
export type Reset = { kind: "reset"; tables: ("sessions" | "conversations")[] };

/**
 * Every step, message, action and session written at or after a time, by the rows' own times, in no order across sessions.
 * Changes during the read may or may not be included: a caller that needs them must follow live events meanwhile.
 */
export async function* missedEvents(store: Store, since: string): AsyncGenerator<CommittedEvent | Reset> {
  const conversation_ids = new Set<string>();
  let count = 0;
  for await (const session of sessionsUpdated(store, since)) {
    if (count >= MOST_SESSIONS) return yield { kind: "reset", tables: ["sessions", "conversations"] };
    count += 1;
    if (session.conversation_id !== null) conversation_ids.add(session.conversation_id);
    yield* missedOf(store, session, since);
  }
  const recent = await store.listConversations({ limit: MOST_CONVERSATIONS + 1, offset: 0 });
  if (recent.length <= MOST_CONVERSATIONS)
    for (const { conversation_id } of recent) conversation_ids.add(conversation_id);
  for (const conversation_id of conversation_ids) yield* messagesOf(store, conversation_id, since);
  if (recent.length > MOST_CONVERSATIONS) yield { kind: "reset", tables: ["conversations"] };
}

async function* sessionsUpdated(store: Store, since: string): AsyncGenerator<Session> {
  let last: Session | undefined;
  for (;;) {
    const after = last && { session_id: last.session_id, at: last.updated_at };
    const page = await store.listSessions({ sort: "updated_at", limit: PAGE, offset: 0, ...(after && { after }) });
    for (const session of page) {
      if (session.updated_at < since) return;
      yield session;
    }
    last = page.at(-1);
    if (page.length < PAGE) return;
  }
}

async function* missedOf(store: Store, session: Session, since: string): AsyncGenerator<CommittedEvent> {
  const { session_id } = session;
  const action_ids = new Set<string>();
  for await (const step of stepsOf(store, session_id, since)) {
    for (const action_id of step.action_ids) action_ids.add(action_id);
    yield { kind: "step", step };
  }
  const recent = await store.listActions({ session_id, limit: PAGE, offset: 0 });
  const changed = recent.filter((action) => action.created_at >= since || (action.processed_at ?? "") >= since);
  for (const action of changed) action_ids.delete(action.action_id);
  const consumed = action_ids.size > 0 ? await store.getActions([...action_ids]) : [];
  for (const action of [...consumed, ...changed]) yield { kind: "action", action };
  yield { kind: "session", session };
}

/** A fork's list begins with its parent's steps, which are replayed with the parent. */
async function* stepsOf(store: Store, session_id: string, since_created_at: string): AsyncGenerator<Step> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.listSteps({ session_id, since_created_at, limit: PAGE, offset });
    for (const step of page) if (step.session_id === session_id) yield step;
    if (page.length < PAGE) return;
  }
}

async function* messagesOf(store: Store, conversation_id: string, since: string): AsyncGenerator<CommittedEvent> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.listMessages({ conversation_id, since, limit: PAGE, offset });
    for (const message of page) yield { kind: "message", message };
    if (page.length < PAGE) return;
  }
}
