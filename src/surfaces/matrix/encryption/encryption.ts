import type { Logger } from "pino";
import { z } from "zod";
import { catalogue } from "../catalogue/catalogue.ts";
import type { MessageContent } from "../outgoing/content.ts";
import { plainNotice } from "../outgoing/plain-notice.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Globs } from "../text/globs.ts";
import { failureOf } from "../transport/failure.ts";
import type { Homeserver } from "../transport/homeserver.ts";
import type { RoomEvent } from "../transport/room-event.ts";
import type { SyncResult } from "../transport/sync-loop.ts";
import type { CryptoMachine, CryptoMachineOptions } from "./crypto-machine.ts";
import { isVerification } from "./is-verification.ts";
import { OverdueNotices } from "./overdue-notices.ts";

export type EncryptionOptions = {
  state: BotState;
  homeserver: Homeserver;
  user_id: string;
  device_id: string;
  isAllowed: Globs;
  /** Opens the account's cross-signing identity and key backup. */
  recovery_key: string | undefined;
  password: string | undefined;
  /** The outbox has something new. */
  onOutbox: () => void;
  log: Logger;
};

/** A sync after decryption. */
export type DecryptedSync = {
  events: RoomEvent[];
  /** There is something to write besides events. */
  has_news: boolean;
  /** To be called in the transaction that writes the position in the stream. */
  save: () => void;
};

/**
 * Hides encryption from the rest of the bot: syncs come in decrypted, messages go out encrypted.
 *
 * The crypto library is loaded with the first encrypted room, from an invite, a sync or the bot's state, and stays.
 */
export class Encryption {
  readonly #options: EncryptionOptions;
  readonly #stopping = new AbortController();
  /** The members of rooms, until they change. */
  readonly #members = new Map<string, string[]>();
  #opening: Promise<CryptoMachine> | undefined;
  #sending: Promise<void> = Promise.resolve();
  #recovering: Promise<void> | undefined;
  /** Keys were restored from the backup since the last sync. */
  #hasRestored = false;
  #isAnnounced = false;
  readonly #overdue: OverdueNotices;

  constructor(options: EncryptionOptions) {
    this.#options = options;
    this.#overdue = new OverdueNotices(options);
  }

  isEncrypted(room_id: string): boolean {
    return this.#options.state.encrypted_rooms.has(room_id);
  }

  /** Publishes the bot's device, so that people can encrypt for it from the moment it joins. */
  async announce(): Promise<void> {
    const machine = await this.#machine();
    await machine.sendRequests(this.#stopping.signal);
    await this.#recover(machine);
  }

  /** Passes a sync on to `write`, with its events decrypted and with earlier ones whose keys have arrived. */
  async receive(sync: SyncResult, write: (decrypted: DecryptedSync) => void): Promise<void> {
    const { state, user_id } = this.#options;
    for (const room_id of sync.changed_member_room_ids) this.#members.delete(room_id);
    if (this.#opening === undefined && sync.encrypted_room_ids.length === 0 && state.encrypted_rooms.isEmpty)
      return write({ events: sync.events, has_news: false, save: () => {} });
    const machine = await this.#machine();
    const { to_device, device_lists } = sync.crypto;
    const hasKeys = to_device.events.length > 0;
    const waiting = hasKeys || this.#hasRestored ? state.undecrypted.all() : [];
    this.#hasRestored = false;
    const encrypted = sync.events.filter((event) => event.type === "m.room.encrypted" && event.sender !== user_id);
    const others = sync.events.filter(({ sender }) => sender !== user_id);
    const events = { encrypted: [...waiting, ...encrypted], plain: others };
    await machine.receive(sync.crypto, events, (decrypted, save) => {
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
    this.#overdue.refresh();
    this.#sending = this.#sendRequests(machine, verifiersIn(sync));
    // People can encrypt for the bot before it says that it is up.
    if (!this.#isAnnounced) await this.#sending;
    this.#isAnnounced = true;
  }

  /** Encrypts a message. `keep` is called in the transaction that makes the ciphertext the only one for this message. */
  async encrypt(
    room_id: string,
    content: MessageContent,
    keep: (ciphertext: string) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const machine = await this.#machine();
    return machine.encrypt(room_id, { type: "m.room.message", content }, keep, signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#overdue[Symbol.dispose]();
    await this.#sending;
    const machine = await this.#opening?.catch(() => undefined);
    machine?.close();
  }

  #machine(): Promise<CryptoMachine> {
    const membersOf = (room_id: string, signal: AbortSignal) => this.#membersOf(room_id, signal);
    this.#opening ??= openMachine({ ...this.#options, membersOf }).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #membersOf(room_id: string, signal: AbortSignal): Promise<string[]> {
    const members = this.#members.get(room_id) ?? (await this.#options.homeserver.members(room_id, signal));
    this.#members.set(room_id, members);
    return members;
  }

  /** What fails is tried again after the next sync and before the next message. */
  async #sendRequests(machine: CryptoMachine, verifiers: Set<string>): Promise<void> {
    const { log, isAllowed } = this.#options;
    const { signal } = this.#stopping;
    try {
      await machine.sendRequests(signal);
      await this.#recover(machine);
      for (const user_id of verifiers) if (isAllowed(user_id)) await this.#proceed(machine, user_id);
      await machine.backUp(signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ failure: failureOf(error) }, "a request about keys failed");
    }
  }

  /** Once per start of the bot, by one caller at a time; again after a failure. */
  async #recover(machine: CryptoMachine): Promise<void> {
    this.#recovering ??= this.#openRecovery(machine).catch((error: unknown) => {
      this.#recovering = undefined;
      throw error;
    });
    await this.#recovering;
  }

  async #openRecovery(machine: CryptoMachine): Promise<void> {
    const { homeserver, user_id, device_id, recovery_key, password, log } = this.#options;
    if (recovery_key === undefined) return;
    const { Recovery } = await import("./recovery.ts");
    const { signal } = this.#stopping;
    await new Recovery({ machine, homeserver, user_id, device_id, recovery_key, password, log, signal }).open();
    this.#hasRestored = true;
  }

  async #proceed(machine: CryptoMachine, user_id: string): Promise<void> {
    const { state, log } = this.#options;
    const { signal } = this.#stopping;
    const show = (_: string, room_id: string | null, emoji: string): void => {
      const place = room_id ?? state.inbox.lastRoomOf(user_id);
      if (place === null) return log.info({ user_id, emoji }, "emoji of a verification");
      const { verification } = catalogue(state.people.settings(user_id).language);
      state.transaction(() => state.outbox.add(place, plainNotice(verification(emoji))));
    };
    const { Verifications } = await import("./verifications.ts");
    await new Verifications({ machine, log, signal, show }).proceed(user_id);
    this.#options.onOutbox();
  }
}

/** Senders who may have advanced a verification. */
function verifiersIn({ crypto, events }: SyncResult): Set<string> {
  const senders = z.array(z.object({ sender: z.string() })).safeParse(crypto.to_device.events);
  const inRooms = events.filter((event) => event.type === "m.room.encrypted" || isVerification(event));
  return new Set([...(senders.data ?? []), ...inRooms].map(({ sender }) => sender));
}

/** Imported only now, so that a bot without encrypted rooms does not load it. */
async function openMachine(options: CryptoMachineOptions): Promise<CryptoMachine> {
  const { CryptoMachine } = await import("./crypto-machine.ts");
  return CryptoMachine.open(options);
}
