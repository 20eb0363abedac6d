import { type Catalogue, catalogue } from "./catalogue/catalogue.ts";
import { contentOf } from "./outgoing/content.ts";
import { plainNotice } from "./outgoing/plain-notice.ts";
import type { BotState } from "./state/bot-state.ts";
import type { RoomEvent } from "./transport/room-event.ts";
import type { SyncResult } from "./transport/sync-loop.ts";

const KEPT_TYPES = new Set(["m.room.message", "m.reaction"]);
const WRITE_EVERY_MS = 30_000;

type WrittenSync = Pick<SyncResult, "since" | "events" | "encrypted_room_ids" | "missed_room_ids"> & {
  /** Something else than events is to be written. */
  has_news: boolean;
};

/**
 * Writes what the homeserver told and the place in its stream together.
 *
 * A place without news is not worth a write of its own: a bot that starts from an older one is told again what it knows,
 * and an event is taken in once.
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

  /** `act` is told when there is something to act on; what it writes is part of the same transaction. */
  take({ since, events, encrypted_room_ids, missed_room_ids, has_news }: WrittenSync, act: () => void): void {
    const kept = events.filter((event) => this.#concerns(event));
    const isDue = this.#since === null || Date.now() - this.#writtenAt > WRITE_EVERY_MS;
    if (has_news || kept.length > 0 || encrypted_room_ids.length > 0 || missed_room_ids.length > 0 || isDue)
      this.#state.transaction(() => {
        for (const event of kept) this.#state.inbox.add(event);
        for (const room_id of encrypted_room_ids) this.#foundEncrypted(room_id);
        for (const room_id of missed_room_ids) this.#state.outbox.add(room_id, plainNotice(this.#words.missed));
        this.#state.keyValues.set("since", since);
        this.#writtenAt = Date.now();
        act();
      });
    // Only now: where the write failed, the homeserver is asked again.
    this.#since = since;
  }

  #concerns({ type, sender }: RoomEvent): boolean {
    return KEPT_TYPES.has(type) && sender !== this.#user_id;
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
