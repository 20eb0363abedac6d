import type { Language } from "../catalogue/catalogue.ts";
import { ChatRecord } from "./chat-record.ts";
import { CryptoRecords } from "./crypto-records.ts";
import { Database } from "./database.ts";
import { Dialogs } from "./dialogs.ts";
import { EncryptedRooms } from "./encrypted-rooms.ts";
import { Inbox } from "./inbox.ts";
import { Jobs } from "./jobs.ts";
import { KeyValues } from "./key-values.ts";
import { Outbox } from "./outbox.ts";
import { People } from "./people.ts";
import { RoomUpgrades } from "./room-upgrades.ts";
import { Saves } from "./saves.ts";
import { SessionQuestions } from "./session-questions.ts";
import { Undecrypted } from "./undecrypted.ts";
import { Watches } from "./watches.ts";

/** Finished rows are kept for replies to them and to recognize repeats, but not for ever. */
const KEPT_ROWS = 20_000;

/** Everything the bot stores. All writes happen inside `transaction`. */
export class BotState {
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly jobs: Jobs;
  readonly dialogs: Dialogs;
  readonly saves: Saves;
  readonly people: People;
  readonly encrypted_rooms: EncryptedRooms;
  readonly undecrypted: Undecrypted;
  readonly crypto_records: CryptoRecords;
  readonly watches: Watches;
  readonly room_upgrades: RoomUpgrades;
  readonly session_questions: SessionQuestions;
  readonly keyValues: KeyValues;
  readonly #database: Database;

  constructor(database: Database, device_id: string, language: Language) {
    this.#database = database;
    this.inbox = new Inbox(database);
    this.outbox = new Outbox(database, device_id);
    this.jobs = new Jobs(database);
    this.dialogs = new Dialogs(database);
    this.saves = new Saves(database);
    this.people = new People(database, language);
    this.encrypted_rooms = new EncryptedRooms(database);
    this.undecrypted = new Undecrypted(database);
    this.crypto_records = new CryptoRecords(database, device_id);
    this.watches = new Watches(database);
    this.room_upgrades = new RoomUpgrades(database);
    this.session_questions = new SessionQuestions(database);
    this.keyValues = new KeyValues(database);
  }

  /** Facts about the chat that everyone shares, or about a thread's own. */
  chat(chat: string | null): ChatRecord {
    return new ChatRecord(chat === null ? this.keyValues : new KeyValues(this.#database, `${chat} `));
  }

  transaction<Result>(work: () => Result): Result {
    return this.#database.transaction(work);
  }

  prune(): void {
    for (const [table, done] of [
      ["inbox", "is_done = 1"],
      ["outbox", "outcome IS NOT NULL"],
      ["jobs", "state = 'done'"],
    ] as const)
      this.#database.run(
        `DELETE FROM ${table} WHERE ${done} AND position <= (SELECT max(position) FROM ${table}) - ${KEPT_ROWS}`,
      );
    this.session_questions.prune();
  }
}
