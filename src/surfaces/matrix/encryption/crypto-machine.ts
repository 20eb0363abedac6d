import type * as CryptoLibrary from "@matrix-org/matrix-sdk-crypto-wasm";
import type { Logger } from "pino";
import { z } from "zod";
import { Mutex } from "../../../concurrency/mutex.ts";
import type { BotState } from "../state/bot-state.ts";
import type { CryptoChanges, Homeserver } from "../transport/homeserver.ts";
import { type RoomEvent, roomEventSchema } from "../transport/room-event.ts";
import { isVerification } from "./is-verification.ts";
import { MemoryIndexedDB } from "./memory-indexed-db.ts";

/** Responses can lead to further requests. */
const MOST_ROUNDS = 5;

export type CryptoMachineOptions = {
  state: BotState;
  homeserver: Homeserver;
  user_id: string;
  device_id: string;
  /** Who reads what is said in a room. */
  membersOf: (room_id: string, signal: AbortSignal) => Promise<string[]>;
  log: Logger;
};

export type Request = {
  readonly id: string | undefined;
  readonly type: CryptoLibrary.RequestType;
  readonly body: string;
};

/**
 * The keys of the bot's device, by the OlmMachine of matrix-sdk-crypto.
 *
 * MATRIX-CRYPTO-1  What a sync says about keys is written in the same transaction as the position in the stream: the homeserver
 *                  deletes a to-device message once the bot asks for what follows it.
 * MATRIX-CRYPTO-2  Nothing that depends on a key or the state of a ratchet leaves the process before that is on disk. A
 *                  ratchet that went back would use the same key for two texts, and the second could not be read.
 * MATRIX-CRYPTO-3  The library is used by one caller at a time, and no request is awaited meanwhile: no half-done operation is
 *                  ever written.
 */
export class CryptoMachine {
  readonly #options: CryptoMachineOptions;
  readonly #library: typeof CryptoLibrary;
  readonly #machine: CryptoLibrary.OlmMachine;
  readonly #store: MemoryIndexedDB;
  /** MATRIX-CRYPTO-3 */
  readonly #inUse = new Mutex();
  /** The library allows one claim of one-time keys at a time. */
  readonly #requesting = new Mutex();

  private constructor(
    options: CryptoMachineOptions,
    library: typeof CryptoLibrary,
    machine: CryptoLibrary.OlmMachine,
    store: MemoryIndexedDB,
  ) {
    this.#options = options;
    this.#library = library;
    this.#machine = machine;
    this.#store = store;
  }

  static async open(options: CryptoMachineOptions): Promise<CryptoMachine> {
    const { state, user_id, device_id, log } = options;
    const store = await MemoryIndexedDB.load(state.crypto_records);
    const library = await import("@matrix-org/matrix-sdk-crypto-wasm");
    await library.initAsync();
    const machine = await library.OlmMachine.initialize(
      new library.UserId(user_id),
      new library.DeviceId(device_id),
      "everstep",
      undefined,
      loggerOf(log),
    );
    store.follow();
    const opened = new CryptoMachine(options, library, machine, store);
    opened.#save();
    return opened;
  }

  /**
   * Processes what a sync says about keys, decrypts, and has `write` store all of it: `write` must call `save` inside its
   * transaction (MATRIX-CRYPTO-1).
   */
  async receive(
    { to_device, device_lists, device_one_time_keys_count, device_unused_fallback_key_types }: CryptoChanges,
    { encrypted, plain }: { encrypted: RoomEvent[]; plain: RoomEvent[] },
    write: (decrypted: Map<string, RoomEvent>, save: () => void) => void,
  ): Promise<void> {
    await this.#inUse.run(async () => {
      const { DeviceLists, UserId } = this.#library;
      const users = (ids: string[]) => ids.map((id) => new UserId(id));
      await this.#machine.receiveSyncChanges(
        JSON.stringify(to_device.events),
        new DeviceLists(users(device_lists.changed), users(device_lists.left)),
        new Map(Object.entries(device_one_time_keys_count)),
        device_unused_fallback_key_types && new Set(device_unused_fallback_key_types),
        this.#decryptionSettings(),
      );
      const decrypted = new Map<string, RoomEvent>();
      for (const event of encrypted) {
        const decryptedEvent = await this.#decrypt(event);
        if (decryptedEvent) decrypted.set(event.event_id, decryptedEvent);
      }
      for (const event of [...plain, ...decrypted.values()]) if (isVerification(event)) await this.#verify(event);
      write(decrypted, () => this.#store.write());
      this.#store.written();
    });
  }

  /** Sends the library's pending requests: the bot's keys, queries about other people's devices, verification messages. */
  async sendRequests(signal: AbortSignal): Promise<void> {
    const messages = await this.#requesting.run(() => this.#sendRequests(signal));
    for (const message of messages) await this.send(message, signal);
  }

  /** Encrypts for the members of a room. `keep` is called in the transaction that writes the ratchet's new state. */
  async encrypt(
    room_id: string,
    { type, content }: { type: string; content: unknown },
    keep: (ciphertext: string) => void,
    signal: AbortSignal,
  ): Promise<string> {
    await this.#requesting.run(() => this.#shareKey(room_id, signal));
    return this.#inUse.run(async () => {
      const room = new this.#library.RoomId(room_id);
      const ciphertext = await this.#machine.encryptRoomEvent(room, type, JSON.stringify(content));
      // MATRIX-CRYPTO-2
      this.#save(() => keep(ciphertext));
      return ciphertext;
    });
  }

  /** Uses the library for one piece of work without requests (MATRIX-CRYPTO-3); its changes are on disk afterwards. */
  use<Result>(
    work: (machine: CryptoLibrary.OlmMachine, library: typeof CryptoLibrary) => Promise<Result>,
  ): Promise<Result> {
    return this.#prepare(() => work(this.#machine, this.#library));
  }

  /** Sends a request of the library and reports the response to it. A message to an encrypted room is encrypted. */
  async send(request: Request, signal: AbortSignal): Promise<void> {
    if (!this.#isForRoom(request) || !this.#options.state.encrypted_rooms.has(request.room_id))
      return this.#send(request, signal);
    const message = { type: request.event_type, content: JSON.parse(request.body) as unknown };
    const ciphertext = await this.encrypt(request.room_id, message, () => {}, signal);
    await this.#send(request, signal, { type: "m.room.encrypted", body: ciphertext });
  }

  close(): void {
    this.#machine.close();
  }

  #isForRoom(request: Request): request is CryptoLibrary.RoomMessageRequest {
    return request instanceof this.#library.RoomMessageRequest;
  }

  async #shareKey(room_id: string, signal: AbortSignal): Promise<void> {
    const { UserId, RoomId, EncryptionSettings, CollectStrategy } = this.#library;
    const members = await this.#options.membersOf(room_id, signal);
    const users = () => members.map((id) => new UserId(id));
    await this.#inUse.run(() => this.#machine.updateTrackedUsers(users()));
    // Unknown or changed devices are queried first.
    await this.#sendRequests(signal);
    const claim = await this.#prepare(() => this.#machine.getMissingSessions(users()));
    if (claim) await this.#send(claim, signal);
    const shares = await this.#prepare(() => {
      const settings = new EncryptionSettings();
      settings.sharingStrategy = CollectStrategy.allDevices();
      return this.#machine.shareRoomKey(new RoomId(room_id), users(), settings);
    });
    for (const share of shares) await this.#send(share, signal);
  }

  /** Sends all but messages to rooms, whose key must be shared first, and returns those. */
  async #sendRequests(signal: AbortSignal): Promise<CryptoLibrary.RoomMessageRequest[]> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const outgoing: Request[] = await this.#prepare(() => this.#machine.outgoingRequests());
      const requests = outgoing.filter((request) => !this.#isForRoom(request));
      if (requests.length === 0) return outgoing.filter((request) => this.#isForRoom(request));
      for (const request of requests) await this.#send(request, signal);
    }
    return [];
  }

  /** Uploads new keys to the account's key backup, if there is one. */
  async backUp(signal: AbortSignal): Promise<void> {
    await this.#requesting.run(async () => {
      for (;;) {
        const request = await this.#prepare(() => this.#machine.backupRoomKeys());
        if (!request) return;
        await this.#send(request, signal);
      }
    });
  }

  /** MATRIX-CRYPTO-2: the state behind a request is on disk before it is sent. */
  #prepare<Result>(make: () => Promise<Result>): Promise<Result> {
    return this.#inUse.run(async () => {
      const made = await make();
      this.#save();
      return made;
    });
  }

  /** `encrypted` replaces the content of a message to a room. */
  async #send(request: Request, signal: AbortSignal, encrypted?: { type: string; body: string }): Promise<void> {
    const { homeserver } = this.#options;
    const { id, type } = request;
    const { method, path } = this.#addressOf(request, encrypted?.type);
    const isUpload = type === this.#library.RequestType.KeysUpload;
    const { first, body } = isUpload
      ? splitUpload(request.body)
      : { first: null, body: encrypted?.body ?? request.body };
    if (first !== null) await homeserver.cryptoRequest(method, path, first, signal);
    const answer = await homeserver.cryptoRequest(method, path, body, signal);
    if (id === undefined) return;
    await this.#prepare(() => this.#machine.markRequestAsSent(id, type, answer));
  }

  #addressOf(request: Request, room_event_type?: string): { method: "POST" | "PUT"; path: string } {
    const { RequestType, ToDeviceRequest, KeysBackupRequest } = this.#library;
    if (request instanceof KeysBackupRequest)
      return { method: "PUT", path: `/room_keys/keys?version=${encodeURIComponent(request.version)}` };
    if (request instanceof ToDeviceRequest)
      return { method: "PUT", path: `/sendToDevice/${request.event_type}/${encodeURIComponent(request.txn_id)}` };
    if (this.#isForRoom(request)) {
      const place = `/rooms/${encodeURIComponent(request.room_id)}/send/${room_event_type ?? request.event_type}`;
      return { method: "PUT", path: `${place}/${encodeURIComponent(request.txn_id)}` };
    }
    const path = new Map([
      [RequestType.KeysUpload, "/keys/upload"],
      [RequestType.KeysQuery, "/keys/query"],
      [RequestType.KeysClaim, "/keys/claim"],
      [RequestType.SignatureUpload, "/keys/signatures/upload"],
    ]).get(request.type);
    if (path === undefined) throw new Error(`the crypto library asked for an unknown request (${request.type})`);
    return { method: "POST", path };
  }

  async #decrypt(event: RoomEvent): Promise<RoomEvent | null> {
    try {
      const room = new this.#library.RoomId(event.room_id);
      const decrypted = await this.#machine.decryptRoomEvent(JSON.stringify(event), room, this.#decryptionSettings());
      return plainEvent(event, decrypted.event);
    } catch (error) {
      const reason = (error as { description?: string }).description ?? String(error);
      this.#options.log.info({ event_id: event.event_id, reason }, "an event cannot be decrypted yet");
      return null;
    }
  }

  async #verify(event: RoomEvent): Promise<void> {
    const room = new this.#library.RoomId(event.room_id);
    await this.#machine.receiveVerificationEvent(JSON.stringify(event), room).catch((error: unknown) => {
      this.#options.log.info(
        { event_id: event.event_id, reason: String(error) },
        "an event of a verification is unusable",
      );
    });
  }

  #decryptionSettings(): CryptoLibrary.DecryptionSettings {
    const { DecryptionSettings, TrustRequirement } = this.#library;
    return new DecryptionSettings(TrustRequirement.Untrusted);
  }

  #save(also: () => void = () => {}): void {
    const { state } = this.#options;
    state.transaction(() => {
      this.#store.write();
      also();
    });
    this.#store.written();
  }
}

/**
 * One-time keys go before the device they belong to: Synapse publishes a device before it stores the keys of the same upload, and
 * whoever writes in between finds none, and sends a message that the bot can never read.
 */
function splitUpload(upload: string): { first: string | null; body: string } {
  const { device_keys, ...keys } = JSON.parse(upload) as { device_keys?: unknown };
  if (device_keys === undefined) return { first: null, body: upload };
  return { first: JSON.stringify(keys), body: JSON.stringify({ device_keys }) };
}

const plainSchema = z.object({ type: z.string(), content: roomEventSchema.shape.content });

/** The event as it would look unencrypted. Its relation is outside of the ciphertext, for the homeserver to see. */
function plainEvent(event: RoomEvent, decrypted: string): RoomEvent {
  const { type, content } = plainSchema.parse(JSON.parse(decrypted));
  const relation = event.content["m.relates_to"];
  return { ...event, type, content: relation === undefined ? content : { "m.relates_to": relation, ...content } };
}

function loggerOf(log: Logger) {
  const detail = (line: unknown): void => log.trace({ line }, "crypto");
  return { debug: detail, info: detail, warn: (line: unknown) => log.debug({ line }, "crypto"), error: detail };
}
