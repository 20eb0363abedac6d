import type { Database } from "./database.ts";

/** What the bot waits to be told, with all that the answer needs. */
export type Question =
  | { kind: "reset" }
  | { kind: "overwrite"; name: string; then_reset: boolean }
  | { kind: "load"; names: string[]; page: number }
  | { kind: "destroy"; session: string };

export type Dialog = { question: Question; transaction_id: string };
type StoredDialog = { question: string; transaction_id: string; expires_at: number };
type Place = { user_id: string; room_id: string; sent_at: number };

const EXPIRES_AFTER_MS = 10 * 60_000;

/**
 * One open question for each person and room.
 *
 * G1  A new question takes the place of the old one, so that `!yes` can mean one thing only: the newest.
 * G2  Times are those that the homeserver gave the person's own events, for the question as for the answer. An answer that
 *     was given in time counts, however late the bot gets to read it.
 */
export class Dialogs {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Answers the question whose place it takes. */
  open(place: Place, question: Question, transaction_id: string): Question | null {
    const { user_id, room_id, sent_at } = place;
    const before = this.current(place);
    this.#database.run(
      "INSERT OR REPLACE INTO dialogs (user_id, room_id, question, transaction_id, expires_at) VALUES (?, ?, ?, ?, ?)",
      user_id,
      room_id,
      JSON.stringify(question),
      transaction_id,
      sent_at + EXPIRES_AFTER_MS,
    );
    return before?.question ?? null;
  }

  current({ user_id, room_id, sent_at }: Place): Dialog | null {
    const row = this.#database.all<StoredDialog>(
      "SELECT question, transaction_id, expires_at FROM dialogs WHERE user_id = ? AND room_id = ?",
      user_id,
      room_id,
    )[0];
    if (!row || row.expires_at < sent_at) return null;
    return { question: JSON.parse(row.question) as Question, transaction_id: row.transaction_id };
  }

  close({ user_id, room_id }: Omit<Place, "sent_at">): void {
    this.#database.run("DELETE FROM dialogs WHERE user_id = ? AND room_id = ?", user_id, room_id);
  }
}
