import { deserialize, serialize } from "node:v8";
import {
  IDBCursor,
  IDBCursorWithValue,
  IDBDatabase,
  IDBFactory,
  IDBIndex,
  IDBKeyRange,
  IDBObjectStore,
  IDBOpenDBRequest,
  IDBRequest,
  IDBTransaction,
  IDBVersionChangeEvent,
} from "fake-indexeddb";
import type { CryptoRecords, CryptoRow } from "../state/crypto-records.ts";

type Key = unknown;
type StoredRecord = { key: Key; value: unknown };
type RawIndex = { name: string; keyPath: string | string[]; multiEntry: boolean; unique: boolean };

/** An object store inside fake-indexeddb. Every change, by a cursor or a rollback too, goes through its three methods. */
type RawStore = {
  name: string;
  keyPath: string | string[] | null;
  autoIncrement: boolean;
  rawIndexes: Map<string, RawIndex>;
  records: { get(key: Key): StoredRecord | undefined; values(range?: unknown): Iterable<StoredRecord> };
  storeRecord: (record: StoredRecord, ...rest: unknown[]) => Key;
  deleteRecord: (key: Key, ...rest: unknown[]) => void;
  clear: (...rest: unknown[]) => void;
};
type RawDatabase = { name: string; version: number; rawObjectStores: Map<string, RawStore> };

type StoreSchema = {
  name: string;
  keyPath: string | string[] | null;
  autoIncrement: boolean;
  indexes: RawIndex[];
};
type DatabaseSchema = { name: string; version: number; stores: StoreSchema[] };

/** The part of the IndexedDB API used here; Node has no types for it. */
type Store = {
  put(value: unknown, key?: Key): unknown;
  createIndex(name: string, keyPath: string | string[], options: { multiEntry: boolean; unique: boolean }): unknown;
};
type Connection = {
  close(): void;
  createObjectStore(name: string, options: { keyPath: string | string[] | null; autoIncrement: boolean }): Store;
};
type OpenRequest = {
  result: Connection;
  error: Error;
  addEventListener(type: "upgradeneeded" | "success" | "error", listener: () => void): void;
};
type Factory = { _databases: Map<string, RawDatabase>; open(name: string, version: number): OpenRequest };

/** The globals that the crypto library expects. */
const GLOBALS = {
  IDBCursor,
  IDBCursorWithValue,
  IDBDatabase,
  IDBFactory,
  IDBIndex,
  IDBKeyRange,
  IDBObjectStore,
  IDBOpenDBRequest,
  IDBRequest,
  IDBTransaction,
  IDBVersionChangeEvent,
};

/**
 * IndexedDB for the crypto library, held in memory and kept in the bot's SQLite.
 *
 * MATRIX-IDB-1  `write` runs inside a transaction of the bot's state and writes every change since the last committed one.
 *               The caller makes sure that no operation of the library is in progress, so the library could have
 *               left this state itself.
 * MATRIX-IDB-2  A change stays marked until `written` says that its transaction was committed.
 */
export class MemoryIndexedDB {
  readonly #factory: Factory;
  readonly #records: CryptoRecords;
  readonly #loaded: Map<string, CryptoRow>;
  readonly #changes = new Map<string, { store: RawStore; place: string; key: Key }>();
  /** The schema to write; it changes only while the library opens its stores. */
  #newSchema: string | null = null;

  private constructor(factory: Factory, records: CryptoRecords, rows: CryptoRow[]) {
    this.#factory = factory;
    this.#records = records;
    this.#loaded = new Map(rows.map((row) => [idOf(row.store, row.key), row]));
  }

  /** Loads the stored records and makes them the IndexedDB of this process. */
  static async load(records: CryptoRecords): Promise<MemoryIndexedDB> {
    const Factory = IDBFactory as unknown as new () => Factory;
    const factory = new Factory();
    const schema = records.schema() ?? "[]";
    const rows = records.all();
    for (const database of JSON.parse(schema) as DatabaseSchema[]) await restore(factory, database, rows);
    Object.assign(globalThis, GLOBALS, { indexedDB: factory });
    return new MemoryIndexedDB(factory, records, rows);
  }

  /** To be called once the library has opened its stores and migrated them where needed. */
  follow(): void {
    for (const { name, rawObjectStores } of this.#factory._databases.values())
      for (const store of rawObjectStores.values()) {
        const place = placeOf(name, store.name);
        for (const { key, value } of store.records.values()) {
          const row = this.#loaded.get(idOf(place, serialize(key)));
          if (!row || !serialize(value).equals(row.value)) this.#mark(store, place, key);
        }
        for (const row of this.#loaded.values())
          if (row.store === place) this.#markIfGone(store, place, deserialize(row.key));
        this.#watch(store, place);
      }
    this.#loaded.clear();
    this.#newSchema = JSON.stringify([...this.#factory._databases.values()].map(schemaOf));
  }

  /** MATRIX-IDB-1 */
  write(): void {
    if (this.#newSchema !== null) this.#records.setSchema(this.#newSchema);
    for (const { store, place, key } of this.#changes.values()) {
      const record = store.records.get(key);
      if (record) this.#records.put(place, serialize(key), serialize(record.value));
      else this.#records.delete(place, serialize(key));
    }
  }

  /** MATRIX-IDB-2 */
  written(): void {
    this.#newSchema = null;
    this.#changes.clear();
  }

  #mark(store: RawStore, place: string, key: Key): void {
    this.#changes.set(idOf(place, serialize(key)), { store, place, key });
  }

  #markIfGone(store: RawStore, place: string, key: Key): void {
    if (!store.records.get(key)) this.#mark(store, place, key);
  }

  #watch(store: RawStore, place: string): void {
    const { storeRecord, deleteRecord, clear } = store;
    store.storeRecord = (...args) => {
      const key = storeRecord.apply(store, args);
      this.#mark(store, place, key);
      return key;
    };
    store.deleteRecord = (key, ...rest) => {
      for (const record of store.records.values(rangeOf(key))) this.#mark(store, place, record.key);
      deleteRecord.call(store, key, ...rest);
    };
    store.clear = (...args) => {
      for (const record of store.records.values()) this.#mark(store, place, record.key);
      clear.apply(store, args);
    };
  }
}

const placeOf = (database: string, store: string): string => `${database}/${store}`;
const idOf = (place: string, key: Uint8Array): string => `${place} ${Buffer.from(key).toString("base64")}`;

function rangeOf(key: Key): unknown {
  const KeyRange = IDBKeyRange as unknown as (new () => unknown) & { only(key: Key): unknown };
  return key instanceof KeyRange ? key : KeyRange.only(key);
}

const schemaOf = ({ name, version, rawObjectStores }: RawDatabase): DatabaseSchema => ({
  name,
  version,
  stores: [...rawObjectStores.values()].map((store) => ({
    name: store.name,
    keyPath: store.keyPath,
    autoIncrement: store.autoIncrement,
    indexes: [...store.rawIndexes.values()].map((index) => ({
      name: index.name,
      keyPath: index.keyPath,
      multiEntry: index.multiEntry,
      unique: index.unique,
    })),
  })),
});

async function restore(factory: Factory, { name, version, stores }: DatabaseSchema, rows: CryptoRow[]): Promise<void> {
  const request = factory.open(name, version);
  const opened = Promise.withResolvers<void>();
  request.addEventListener("upgradeneeded", () => {
    for (const { name: storeName, keyPath, autoIncrement, indexes } of stores) {
      const store = request.result.createObjectStore(storeName, { keyPath, autoIncrement });
      for (const index of indexes) store.createIndex(index.name, index.keyPath, index);
      const place = placeOf(name, storeName);
      for (const row of rows.filter((candidate) => candidate.store === place)) {
        const value: unknown = deserialize(row.value);
        if (keyPath === null) store.put(value, deserialize(row.key));
        else store.put(value);
      }
    }
  });
  request.addEventListener("success", () => opened.resolve());
  request.addEventListener("error", () => opened.reject(request.error));
  await opened.promise;
  request.result.close();
}
