import type * as CryptoLibrary from "@matrix-org/matrix-sdk-crypto-wasm";
import type { Logger } from "pino";
import { z } from "zod";
import type { BotState } from "../state/bot-state.ts";
import type { CryptoChanges, Homeserver } from "../transport/homeserver.ts";
import { type RoomEvent, roomEventSchema } from "../transport/room-event.ts";
import { MemoryIndexedDB } from "./memory-indexed-db.ts";
import { Mutex } from "./mutex.ts";

/** Answers to requests can ask for more of them. */
const MOST_ROUNDS = 5;

export type CryptoMachineOptions = {
  state: BotState;
  homeserver: Homeserver;
  user_id: string;
  device_id: string;
  log: Logger;
};

type Request = {
  readonly id: string | undefined;
  readonly type: CryptoLibrary.RequestType;
  readonly body: string;
};

/**
 * The keys of the bot's device, by the OlmMachine of matrix-sdk-crypto.
 *
 * MATRIX-CRYPTO-1  What a sync tells of keys is written in the same transaction as the place in the stream: the homeserver forgets
 *                  a message to a device once the bot asks for what comes after it.
 * MATRIX-CRYPTO-2  Nothing that depends on a key or on the state of a ratchet leaves the process before that is on disk. A
 *                  ratchet that went back would encrypt two texts alike, and the second could not be read.
 * MATRIX-CRYPTO-3  The library is used by one caller at a time, and no request is awaited meanwhile: the state that is written
 *                  is never that of a half-done operation.
 */
export class CryptoMachine {
  readonly #options: CryptoMachineOptions;
  readonly #library: typeof CryptoLibrary;
  readonly #machine: CryptoLibrary.OlmMachine;
  readonly #store: MemoryIndexedDB;
  /** MATRIX-CRYPTO-3 */
  readonly #inUse = new Mutex();
  /** The library wants no two claims of one-time keys at the same time. */
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
   * Takes in what a sync told of keys, decrypts, and has `write` journal all of it: what `write` is given is to be called inside its
   * transaction (MATRIX-CRYPTO-1).
   */
  async receive(
    { to_device, device_lists, device_one_time_keys_count, device_unused_fallback_key_types }: CryptoChanges,
    encrypted: RoomEvent[],
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
        const plain = await this.#decrypt(event);
        if (plain) decrypted.set(event.event_id, plain);
      }
      write(decrypted, () => this.#store.write());
      this.#store.written();
    });
  }

  /** Sends what the library wants to be sent: own keys, questions about other people's devices, answers to them. */
  async sendRequests(signal: AbortSignal): Promise<void> {
    await this.#requesting.run(() => this.#sendRequests(signal));
  }

  /** Encrypts for those who are in a room. `keep` is called in the transaction that writes the ratchet's new state. */
  async encrypt(
    room_id: string,
    { type, content }: { type: string; content: unknown },
    members: string[],
    keep: (ciphertext: string) => void,
    signal: AbortSignal,
  ): Promise<string> {
    await this.#requesting.run(() => this.#shareKey(room_id, members, signal));
    return this.#inUse.run(async () => {
      const room = new this.#library.RoomId(room_id);
      const ciphertext = await this.#machine.encryptRoomEvent(room, type, JSON.stringify(content));
      // MATRIX-CRYPTO-2
      this.#save(() => keep(ciphertext));
      return ciphertext;
    });
  }

  close(): void {
    this.#machine.close();
  }

  async #shareKey(room_id: string, members: string[], signal: AbortSignal): Promise<void> {
    const { UserId, RoomId, EncryptionSettings, CollectStrategy } = this.#library;
    const users = () => members.map((id) => new UserId(id));
    await this.#inUse.run(() => this.#machine.updateTrackedUsers(users()));
    // Whose devices are not known, or changed, is asked about first.
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

  async #sendRequests(signal: AbortSignal): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const requests = await this.#prepare(() => this.#machine.outgoingRequests());
      if (requests.length === 0) return;
      for (const request of requests) await this.#send(request, signal);
    }
  }

  /** MATRIX-CRYPTO-2: what a request is made of is on disk before it is sent. */
  #prepare<Result>(make: () => Promise<Result>): Promise<Result> {
    return this.#inUse.run(async () => {
      const made = await make();
      this.#save();
      return made;
    });
  }

  async #send(request: Request, signal: AbortSignal): Promise<void> {
    const { homeserver } = this.#options;
    const { method, path } = this.#addressOf(request);
    const answer = await homeserver.cryptoRequest(method, path, request.body, signal);
    const { id, type } = request;
    if (id === undefined) return;
    await this.#prepare(() => this.#machine.markRequestAsSent(id, type, answer));
  }

  #addressOf(request: Request): { method: "POST" | "PUT"; path: string } {
    const { RequestType, ToDeviceRequest, RoomMessageRequest } = this.#library;
    if (request instanceof ToDeviceRequest)
      return { method: "PUT", path: `/sendToDevice/${request.event_type}/${encodeURIComponent(request.txn_id)}` };
    if (request instanceof RoomMessageRequest) {
      const place = `/rooms/${encodeURIComponent(request.room_id)}/send`;
      return { method: "PUT", path: `${place}/${request.event_type}/${encodeURIComponent(request.txn_id)}` };
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

const plainSchema = z.object({ type: z.string(), content: roomEventSchema.shape.content });

/** The event as it would have come unencrypted. What it relates to is outside of what is encrypted, for the homeserver to see. */
function plainEvent(event: RoomEvent, decrypted: string): RoomEvent {
  const { type, content } = plainSchema.parse(JSON.parse(decrypted));
  const relation = event.content["m.relates_to"];
  return { ...event, type, content: relation === undefined ? content : { "m.relates_to": relation, ...content } };
}

function loggerOf(log: Logger) {
  const detail = (line: unknown): void => log.trace({ line }, "crypto");
  return { debug: detail, info: detail, warn: (line: unknown) => log.debug({ line }, "crypto"), error: detail };
}
