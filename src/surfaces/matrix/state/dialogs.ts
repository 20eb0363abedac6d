import type { Database } from "./database.ts";

/** A question of the bot, with everything needed to act on the answer. */
export type Question =
  | { kind: "reset" }
  | { kind: "overwrite"; name: string; then_reset: boolean }
  | { kind: "load"; names: string[]; page: number; adds?: boolean }
  | { kind: "destroy"; session: string };

/** `before`: the question it replaced, so that an answer to that one is not misunderstood. */
export type Dialog = { question: Question; transaction_id: string; before: Question | null };
type StoredDialog = { question: string; transaction_id: string; expires_at: number };
export type Place = { user_id: string; room_id: string; sent_at: number };

/** The transaction id of an open question that was not shown yet. */
export const NOT_PUT = "";

const EXPIRES_AFTER_MS = 10 * 60_000;

/**
 * One open question for each person and room.
 *
 * MATRIX-DIALOGS-1  A new question replaces the old one, so `!yes` can mean only one thing: the newest.
 * MATRIX-DIALOGS-2  Times are those of the person's own events at the homeserver, for the question and the answer. An answer given
 *                   in time counts, however late the bot reads it.
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
