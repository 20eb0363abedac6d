import type { Language } from "../catalogue/catalogue.ts";
import { ChatFactsState } from "./chat-facts.ts";
import { CryptoRecords } from "./crypto-records.ts";
import { Database } from "./database.ts";
import { Dialogs } from "./dialogs.ts";
import { EncryptedRooms } from "./encrypted-rooms.ts";
import { Inbox } from "./inbox.ts";
import { Jobs } from "./jobs.ts";
import { KeyValues } from "./key-values.ts";
import { Outbox } from "./outbox.ts";
import { People } from "./people.ts";
import { Saves } from "./saves.ts";
import { SessionQuestions } from "./session-questions.ts";
import { Undecrypted } from "./undecrypted.ts";
import { Watches } from "./watches.ts";

/** Rows that were dealt with are kept for replies to them and against repetition, but not for ever. */
const KEPT_ROWS = 20_000;

/** All that the bot keeps. Everything in it is written inside `transaction`. */
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
  readonly session_questions: SessionQuestions;
  readonly keyValues: KeyValues;
  readonly chat: ChatFactsState;
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
    this.session_questions = new SessionQuestions(database);
    this.keyValues = new KeyValues(database);
    this.chat = new ChatFactsState(this.keyValues);
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
  }
}
