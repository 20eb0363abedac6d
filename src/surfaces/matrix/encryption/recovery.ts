import type * as CryptoLibrary from "@matrix-org/matrix-sdk-crypto-wasm";
import { decodeRecoveryKey } from "matrix-js-sdk/lib/crypto-api/recovery-key.js";
import {
  type AccountDataClient,
  SECRET_STORAGE_ALGORITHM_V1_AES,
  ServerSideSecretStorageImpl,
} from "matrix-js-sdk/lib/secret-storage.js";
import type { Logger } from "pino";
import { z } from "zod";
import type { Homeserver } from "../transport/homeserver.ts";
import type { CryptoMachine } from "./crypto-machine.ts";

const BACKUP_SECRET = "m.megolm_backup.v1";
const MASTER = "m.cross_signing.master";
const SELF_SIGNING = "m.cross_signing.self_signing";
const USER_SIGNING = "m.cross_signing.user_signing";
const BACKUP_ALGORITHM = "m.megolm_backup.v1.curve25519-aes-sha2";

type SecretName = Parameters<ServerSideSecretStorageImpl["get"]>[0];

const versionSchema = z.object({
  version: z.string(),
  algorithm: z.string(),
  auth_data: z.object({ public_key: z.string() }),
});
const createdSchema = z.object({ version: z.string() });
const backedUpSchema = z.object({
  rooms: z.record(
    z.string(),
    z.object({
      sessions: z.record(
        z.string(),
        z.object({ session_data: z.object({ ephemeral: z.string(), mac: z.string(), ciphertext: z.string() }) }),
      ),
    }),
  ),
});
const accountDataSchema = z.record(z.string(), z.unknown());

export type RecoveryOptions = {
  machine: CryptoMachine;
  homeserver: Homeserver;
  user_id: string;
  device_id: string;
  recovery_key: string;
  /** For homeservers that require it before they accept the keys of an identity. */
  password: string | undefined;
  log: Logger;
  signal: AbortSignal;
};

/**
 * The bot's cross-signing identity and its key backup. Their private keys are in the account's secret storage, which the recovery
 * key opens, as in people's clients.
 *
 * MATRIX-RECOVERY-1  Nothing that was set up before is replaced. If the recovery key does not open it, it is left alone.
 * MATRIX-RECOVERY-2  A private key is in the secret storage before its public part is published, so that a crash in between leaves nothing
 *                    published that nobody can use. Each step can be repeated.
 * MATRIX-RECOVERY-3  No verification proceeds before this is done: the library vouches only for an identity that it trusts, and
 *                    without one the person's client would verify just the device.
 */
export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #secrets: ServerSideSecretStorageImpl;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    const key = decodeRecoveryKey(options.recovery_key);
    this.#secrets = new ServerSideSecretStorageImpl(this.#accountData() as unknown as AccountDataClient, {
      getSecretStorageKey: async ({ keys }) => {
        const [id] = Object.keys(keys);
        return id === undefined ? null : [id, key];
      },
    });
  }

  /** False if the recovery key is not that of the account. */
  async open(): Promise<boolean> {
    const { log, recovery_key } = this.#options;
    const key = decodeRecoveryKey(recovery_key);
    const accountKey = await this.#secrets.getKey();
    if (accountKey !== null && !(await this.#secrets.checkKey(key, accountKey[1]))) {
      log.error("MATRIX_RECOVERY_KEY does not open the account's secret storage; identity and key backup are not used");
      return false;
    }
    if (accountKey === null) {
      const { keyId } = await this.#secrets.addKey(SECRET_STORAGE_ALGORITHM_V1_AES, { key });
      await this.#secrets.setDefaultKeyId(keyId);
    }
    await this.#openIdentity();
    await this.#openBackup();
    return true;
  }

  async #openIdentity(): Promise<void> {
    const { machine, user_id, device_id, log, signal } = this.#options;
    const status = await machine.use((olm) => olm.crossSigningStatus());
    const isKnownHere = status.hasMaster && status.hasSelfSigning && status.hasUserSigning;
    const isPublished = (await machine.use((olm, { UserId }) => olm.getIdentity(new UserId(user_id)))) !== undefined;
    if (!isKnownHere && isPublished) {
      const [master, own, users] = await Promise.all(
        [MASTER, SELF_SIGNING, USER_SIGNING].map((name) => this.#secret(name)),
      );
      if (!master || !own || !users)
        return log.warn("the bot's account has a cross-signing identity whose keys are not in its secret storage");
      await machine.use((olm) => olm.importCrossSigningKeys(master, own, users));
    }
    if (!isPublished) await this.#publishIdentity(!isKnownHere);
    const signature = await machine.use(async (olm, { UserId, DeviceId }) => {
      const device = await olm.getDevice(new UserId(user_id), new DeviceId(device_id));
      return device && !device.isCrossSignedByOwner() ? device.verify() : undefined;
    });
    if (signature) await machine.send(signature, signal);
    await machine.sendRequests(signal);
    await this.#trustIdentity();
  }

  /**
   * MATRIX-RECOVERY-3. The library trusts the identity once it has read it from the homeserver, which a sync would trigger
   * only later.
   */
  async #trustIdentity(): Promise<void> {
    const { machine, user_id, log, signal } = this.#options;
    const query = await machine.use(async (olm, { UserId }) => olm.queryKeysForUsers([new UserId(user_id)]));
    await machine.send(query, signal);
    const identity = await machine.use((olm, { UserId }) => olm.getIdentity(new UserId(user_id)));
    if (!identity?.isVerified()) log.warn("the bot's account has another cross-signing identity than this bot knows");
  }

  async #publishIdentity(is_new: boolean): Promise<void> {
    const { machine, signal } = this.#options;
    const requests = await machine.use((olm) => olm.bootstrapCrossSigning(is_new));
    const keys = await machine.use((olm) => olm.exportCrossSigningKeys());
    // MATRIX-RECOVERY-2
    await this.#store(MASTER, keys?.masterKey);
    await this.#store(SELF_SIGNING, keys?.self_signing_key);
    await this.#store(USER_SIGNING, keys?.userSigningKey);
    const upload: unknown = requests.uploadKeysRequest;
    if (upload) await machine.send(upload as CryptoLibrary.KeysUploadRequest, signal);
    await this.#options.homeserver.uploadIdentity(
      requests.uploadSigningKeysRequest.body,
      { user_id: this.#options.user_id, password: this.#options.password },
      signal,
    );
    await machine.send(requests.uploadSignaturesRequest, signal);
  }

  async #openBackup(): Promise<void> {
    const { machine, log } = this.#options;
    const published = await this.#request("GET", "/room_keys/version", versionSchema);
    const secret = await this.#secret(BACKUP_SECRET);
    const key = await machine.use(async (_, { BackupDecryptionKey }) =>
      secret ? BackupDecryptionKey.fromBase64(secret) : BackupDecryptionKey.createRandomKey(),
    );
    const { publicKeyBase64 } = key.megolmV1PublicKey;
    if (published && (!secret || published.auth_data.public_key !== publicKeyBase64))
      return log.warn("the account's key backup has another key than its secret storage; it is left alone");
    // MATRIX-RECOVERY-2
    if (!secret) await this.#store(BACKUP_SECRET, key.toBase64());
    const version = published?.version ?? (await this.#createBackup(publicKeyBase64));
    const isNewHere = (await machine.use((olm) => olm.getBackupKeys())).backupVersion !== version;
    if (isNewHere && published) await this.#restore(key, version);
    await machine.use(async (olm) => {
      await olm.saveBackupDecryptionKey(key, version);
      await olm.enableBackupV1(publicKeyBase64, version);
    });
  }

  async #createBackup(public_key: string): Promise<string> {
    const { machine } = this.#options;
    const signatures = await machine.use((olm) => olm.sign(JSON.stringify({ public_key })));
    const auth_data = { public_key, signatures: JSON.parse(signatures.asJSON()) as unknown };
    const body = { algorithm: BACKUP_ALGORITHM, auth_data };
    const created = await this.#request("POST", "/room_keys/version", createdSchema, body);
    if (!created) throw new Error("the homeserver keeps no backup of keys");
    return created.version;
  }

  async #restore(key: CryptoLibrary.BackupDecryptionKey, version: string): Promise<void> {
    const { machine, log } = this.#options;
    const path = `/room_keys/keys?version=${encodeURIComponent(version)}`;
    const backup = await this.#request("GET", path, backedUpSchema);
    await machine.use(async (olm, { RoomId }) => {
      const rooms = new Map<CryptoLibrary.RoomId, Map<string, unknown>>();
      for (const [room_id, { sessions }] of Object.entries(backup?.rooms ?? {})) {
        const keys = new Map<string, unknown>();
        for (const [session_id, { session_data }] of Object.entries(sessions))
          try {
            const { ephemeral, mac, ciphertext } = session_data;
            const session = JSON.parse(key.decryptV1(ephemeral, mac, ciphertext)) as Record<string, unknown>;
            keys.set(session_id, { ...session, room_id, session_id });
          } catch (error) {
            log.warn({ err: error, room_id }, "a key of the backup cannot be read");
          }
        rooms.set(new RoomId(room_id), keys);
      }
      await olm.importBackedUpRoomKeys(rooms, () => {}, version);
    });
  }

  /** Null if it does not exist. */
  async #request<Shape>(
    method: "GET" | "POST" | "PUT",
    path: string,
    schema: z.ZodType<Shape>,
    body?: object,
  ): Promise<Shape | null> {
    const { homeserver, signal } = this.#options;
    const answer = await homeserver.requestOrNull(method, path, body, signal);
    return answer === null ? null : schema.parse(answer);
  }

  async #secret(name: string): Promise<string | undefined> {
    return this.#secrets.get(name as SecretName);
  }

  async #store(name: string, secret: string | undefined): Promise<void> {
    if (secret === undefined) throw new Error(`the crypto library has no ${name}`);
    await this.#secrets.store(name as SecretName, secret);
  }

  #accountData() {
    const { user_id } = this.#options;
    const place = (type: string): string =>
      `/user/${encodeURIComponent(user_id)}/account_data/${encodeURIComponent(type)}`;
    return {
      getAccountDataFromServer: (type: string) => this.#request("GET", place(type), accountDataSchema),
      setAccountData: async (type: string, content: object) => {
        await this.#request("PUT", place(type), z.unknown(), content);
        return {};
      },
    };
  }
}
