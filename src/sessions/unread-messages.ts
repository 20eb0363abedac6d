import type { Message, SessionCursor } from "../domain/conversation.ts";
import { now } from "../domain/ids.ts";
import type { Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";

/**
 * New messages in a session's conversation, for monikers that poll. The read position is committed with the step, so a retried
 * step reads the same messages again.
 */
export class UnreadMessages {
  readonly #store: Store;
  readonly #session: Session;
  #last: string | undefined;

  constructor(store: Store, session: Session) {
    this.#store = store;
    this.#session = session;
  }

  /** Other participants' messages since the last committed step that read them, oldest first. */
  async unread(limit = 100): Promise<Message[]> {
    const { session_id, conversation_id } = this.#session;
    if (conversation_id === null) return [];
    this.#last ??= (await this.#store.getCursor({ session_id, conversation_id }))?.message_id;
    const after = this.#last === undefined ? {} : { after: this.#last };
    const messages = await this.#store.listMessages({ conversation_id, limit, offset: 0, ...after });
    this.#last = messages.at(-1)?.message_id ?? this.#last;
    return messages.filter((message) => message.session_id !== session_id);
  }

  /** The cursor to commit; null if the step did not read. */
  get cursor(): SessionCursor | null {
    const { session_id, conversation_id } = this.#session;
    if (conversation_id === null || this.#last === undefined) return null;
    return { session_id, conversation_id, message_id: this.#last, updated_at: now() };
  }
}
