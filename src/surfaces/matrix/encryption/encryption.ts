import type { Logger } from "pino";
import { catalogue } from "../catalogue/catalogue.ts";
import type { MessageContent } from "../outgoing/content.ts";
import { plainNotice } from "../outgoing/plain-notice.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Globs } from "../text/globs.ts";
import { failureOf } from "../transport/failure.ts";
import type { Homeserver } from "../transport/homeserver.ts";
import type { RoomEvent } from "../transport/room-event.ts";
import type { SyncResult } from "../transport/sync-loop.ts";
import type { CryptoMachine } from "./crypto-machine.ts";

export type EncryptionOptions = {
  state: BotState;
  homeserver: Homeserver;
  user_id: string;
  device_id: string;
  isAllowed: Globs;
  log: Logger;
};

/** A sync after decryption. */
export type DecryptedSync = {
  events: RoomEvent[];
  /** There is something to write, whatever the events are. */
  has_news: boolean;
  /** To be called in the transaction that writes the place in the stream. */
  save: () => void;
};

/**
 * Encrypted rooms, for the rest of the bot: syncs come in decrypted, messages go out encrypted.
 *
 * The crypto library is loaded when the first encrypted room turns up, by an invite, by a sync or from the bot's state, and stays.
 */
export class Encryption {
  readonly #options: EncryptionOptions;
  readonly #stopping = new AbortController();
  /** Rooms whose members are known since their last change. */
  readonly #members = new Map<string, string[]>();
  #opening: Promise<CryptoMachine> | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: EncryptionOptions) {
    this.#options = options;
  }

  isEncrypted(room_id: string): boolean {
    return this.#options.state.encrypted_rooms.has(room_id);
  }

  /** Makes the bot's device known, so that people can encrypt for it from the moment it joins. */
  async announce(): Promise<void> {
    const machine = await this.#machine();
    await machine.sendRequests(this.#stopping.signal);
  }

  /** Hands a sync on to be written, with its events decrypted and with those of before whose keys have come. */
  async receive(sync: SyncResult, write: (decrypted: DecryptedSync) => void): Promise<void> {
    const { state, user_id } = this.#options;
    for (const room_id of sync.changed_member_room_ids) this.#members.delete(room_id);
    if (this.#opening === undefined && sync.encrypted_room_ids.length === 0 && state.encrypted_rooms.isEmpty)
      return write({ events: sync.events, has_news: false, save: () => {} });
    const machine = await this.#machine();
    const { to_device, device_lists } = sync.crypto;
    const hasKeys = to_device.events.length > 0;
    const waiting = hasKeys ? state.undecrypted.all() : [];
    const encrypted = sync.events.filter((event) => event.type === "m.room.encrypted" && event.sender !== user_id);
    await machine.receive(sync.crypto, [...waiting, ...encrypted], (decrypted, save) => {
      const late = waiting.flatMap(({ event_id }) => decrypted.get(event_id) ?? []);
      write({
        events: [...late, ...sync.events.map((event) => decrypted.get(event.event_id) ?? event)],
        has_news: hasKeys || encrypted.length > 0 || device_lists.changed.length + device_lists.left.length > 0,
        save: () => {
          save();
          for (const { event_id } of late) state.undecrypted.delete(event_id);
          for (const event of encrypted) if (!decrypted.has(event.event_id)) state.undecrypted.add(event);
        },
      });
    });
    this.#tellOverdue();
    this.#sendRequests(machine);
  }

  /** Encrypts a message. `keep` is called in the transaction that makes the ciphertext the only one for this message. */
  async encrypt(
    room_id: string,
    content: MessageContent,
    keep: (ciphertext: string) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const machine = await this.#machine();
    const members = this.#members.get(room_id) ?? (await this.#options.homeserver.members(room_id, signal));
    this.#members.set(room_id, members);
    return machine.encrypt(room_id, { type: "m.room.message", content }, members, keep, signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#sending;
    const machine = await this.#opening?.catch(() => undefined);
    machine?.close();
  }

  #machine(): Promise<CryptoMachine> {
    this.#opening ??= openMachine(this.#options).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** What fails is asked for again after the next sync, and before the next message. */
  #sendRequests(machine: CryptoMachine): void {
    const { log } = this.#options;
    this.#sending = machine.sendRequests(this.#stopping.signal).catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) log.warn({ failure: failureOf(error) }, "a request about keys failed");
    });
  }

  #tellOverdue(): void {
    const { state, isAllowed } = this.#options;
    state.transaction(() => {
      for (const { room_id, event_id, sender } of state.undecrypted.takeOverdue())
        if (isAllowed(sender)) {
          const { undecryptable } = catalogue(state.people.settings(sender).language);
          state.outbox.add(room_id, plainNotice(undecryptable, event_id));
        }
    });
  }
}

/** Only now is the library read, so that a bot without encrypted rooms does not carry it. */
async function openMachine(options: EncryptionOptions): Promise<CryptoMachine> {
  const { CryptoMachine } = await import("./crypto-machine.ts");
  return CryptoMachine.open(options);
}
