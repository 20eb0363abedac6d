import type { Database } from "./database.ts";

export type CryptoRow = { store: string; key: Uint8Array; value: Uint8Array };

/** The records of the crypto library for one device. Those of other devices are left alone: a login may return to them. */
export class CryptoRecords {
  readonly #database: Database;
  readonly #device_id: string;

  constructor(database: Database, device_id: string) {
    this.#database = database;
    this.#device_id = device_id;
  }

  /** The stores, as JSON. */
  schema(): string | null {
    return (
      this.#database.all<{ schema: string }>(
        "SELECT schema FROM crypto_schemas WHERE device_id = ?",
        this.#device_id,
      )[0]?.schema ?? null
    );
  }

  setSchema(schema: string): void {
    this.#database.run(
      "INSERT OR REPLACE INTO crypto_schemas (device_id, schema) VALUES (?, ?)",
      this.#device_id,
      schema,
    );
  }

  all(): CryptoRow[] {
    return this.#database.all<CryptoRow>(
      "SELECT store, key, value FROM crypto_records WHERE device_id = ?",
      this.#device_id,
    );
  }

  put(store: string, key: Uint8Array, value: Uint8Array): void {
    this.#database.run(
      "INSERT OR REPLACE INTO crypto_records (device_id, store, key, value) VALUES (?, ?, ?, ?)",
      this.#device_id,
      store,
      key,
      value,
    );
  }

  delete(store: string, key: Uint8Array): void {
    this.#database.run(
      "DELETE FROM crypto_records WHERE device_id = ? AND store = ? AND key = ?",
      this.#device_id,
      store,
      key,
    );
  }
}
