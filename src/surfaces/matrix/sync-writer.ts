import { type Catalogue, catalogue } from "./catalogue/catalogue.ts";
import { contentOf } from "./outgoing/content.ts";
import { plainNotice } from "./outgoing/plain-notice.ts";
import type { BotState } from "./state/bot-state.ts";
import type { RoomEvent } from "./transport/room-event.ts";
import type { SyncResult } from "./transport/sync-loop.ts";

const KEPT_TYPES = new Set(["m.room.message", "m.reaction"]);
const WRITE_EVERY_MS = 30_000;

type WrittenSync = Pick<SyncResult, "since" | "events" | "encrypted_room_ids" | "missed_room_ids" | "upgrades"> & {
  /** There is something other than events to write. */
  has_news: boolean;
};

/**
 * Writes the result of a sync together with the position in the stream.
 *
 * MATRIX-ECHO-1  A message of the bot's own in a sync is sent, whether or not the homeserver's response has arrived. So a reaction or
 *                a reply, which can only follow it in the stream, always finds the message it refers to.
 *
 * A position without news is not worth its own write: a bot that starts from an older one receives the same events again and
 * stores each once.
 */
export class SyncWriter {
  readonly #state: BotState;
  readonly #user_id: string;
  readonly #refusesEncryption: boolean;
  #since: string | null;
  #writtenAt = 0;

  constructor(state: BotState, user_id: string, { refuses_encryption }: { refuses_encryption: boolean }) {
    this.#state = state;
    this.#user_id = user_id;
    this.#refusesEncryption = refuses_encryption;
    this.#since = state.keyValues.get("since");
  }

  get since(): string | null {
    return this.#since;
  }

  /** Calls `act` inside the transaction when there is something to act on. */
  take(sync: WrittenSync, act: () => void): void {
    const { since, events, encrypted_room_ids, missed_room_ids, upgrades, has_news } = sync;
    const kept = events.filter((event) => this.#concerns(event));
    const echoes = events.flatMap((event) => this.#unacknowledged(event));
    const isDue = this.#since === null || Date.now() - this.#writtenAt > WRITE_EVERY_MS;
    const lists = [echoes, kept, encrypted_room_ids, missed_room_ids, upgrades];
    if (has_news || isDue || lists.some(({ length }) => length > 0))
      this.#state.transaction(() => {
        for (const { transaction_id, event_id } of echoes) this.#state.outbox.sent(transaction_id, event_id);
        for (const event of kept) this.#state.inbox.add(event);
        for (const room_id of encrypted_room_ids) this.#foundEncrypted(room_id);
        for (const upgrade of upgrades) this.#state.room_upgrades.add(upgrade);
        for (const room_id of missed_room_ids) this.#state.outbox.add(room_id, plainNotice(this.#words.missed));
        this.#state.keyValues.set("since", since);
        this.#writtenAt = Date.now();
        act();
      });
    // Only now: after a failed write the homeserver is asked for the same again.
    this.#since = since;
  }

  #concerns({ type, sender }: RoomEvent): boolean {
    return KEPT_TYPES.has(type) && sender !== this.#user_id;
  }

  /** MATRIX-ECHO-1 */
  #unacknowledged({ sender, event_id, unsigned }: RoomEvent): { transaction_id: string; event_id: string }[] {
    const transaction_id = sender === this.#user_id ? unsigned?.transaction_id : undefined;
    if (transaction_id === undefined || this.#state.outbox.find(transaction_id)?.outcome !== null) return [];
    return [{ transaction_id, event_id }];
  }

  #foundEncrypted(room_id: string): void {
    if (!this.#refusesEncryption) this.#state.encrypted_rooms.add(room_id);
    else if (this.#state.encrypted_rooms.refuse(room_id))
      this.#state.outbox.add(room_id, contentOf(this.#words.encrypted, { is_notice: true }));
  }

  get #words(): Catalogue {
    return catalogue(this.#state.people.settings("").language);
  }
}
