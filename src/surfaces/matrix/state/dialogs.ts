import type { Database } from "./database.ts";

/** What the bot waits to be told, with all that the answer needs. */
export type Question =
  | { kind: "reset" }
  | { kind: "overwrite"; name: string; then_reset: boolean }
  | { kind: "load"; names: string[]; page: number; adds?: boolean }
  | { kind: "destroy"; session: string };

/** `before`: the question whose place it took, so that an answer to that one is not taken for something else. */
export type Dialog = { question: Question; transaction_id: string; before: Question | null };
type StoredDialog = { question: string; transaction_id: string; expires_at: number };
export type Place = { user_id: string; room_id: string; sent_at: number };

/** The transaction id of a question that is open and was not put yet. */
export const NOT_PUT = "";

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

  open(
    { user_id, room_id, sent_at }: Place,
    question: Question,
    transaction_id: string,
    before: Question | null,
  ): void {
    this.#database.run(
      "INSERT OR REPLACE INTO dialogs (user_id, room_id, question, transaction_id, expires_at) VALUES (?, ?, ?, ?, ?)",
      user_id,
      room_id,
      JSON.stringify({ ...question, before }),
      transaction_id,
      sent_at + EXPIRES_AFTER_MS,
    );
  }

  current({ user_id, room_id, sent_at }: Place): Dialog | null {
    const row = this.#database.all<StoredDialog>(
      "SELECT question, transaction_id, expires_at FROM dialogs WHERE user_id = ? AND room_id = ?",
      user_id,
      room_id,
    )[0];
    if (!row || row.expires_at < sent_at) return null;
    const { before = null, ...question } = JSON.parse(row.question) as Question & { before?: Question | null };
    return { question, transaction_id: row.transaction_id, before };
  }

  close({ user_id, room_id }: Omit<Place, "sent_at">): void {
    this.#database.run("DELETE FROM dialogs WHERE user_id = ? AND room_id = ?", user_id, room_id);
  }
}
