import type { JsonValue } from "../../../domain/json.ts";
import type { Database } from "./database.ts";

/** A session's question in a room, and the message that shows it. */
export type SessionQuestion = {
  transaction_id: string;
  room_id: string;
  session_id: string;
  question_id: string;
  /** The values of the choices; null if it is answered in words. */
  choices: JsonValue[] | null;
  /** What 👍 and 👎 mean; null if they mean nothing. */
  thumbs: [yes: JsonValue, no: JsonValue] | null;
};
type Stored = Omit<SessionQuestion, "choices" | "thumbs"> & { choices: string; thumbs: string };

/** Questions of sessions: each is asked once in a room, and found by a reply or a reaction to its message. */
export class SessionQuestions {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ transaction_id, room_id, session_id, question_id, choices, thumbs }: SessionQuestion): void {
    this.#database.run(
      "INSERT INTO session_questions (transaction_id, room_id, session_id, question_id, choices, thumbs) VALUES (?, ?, ?, ?, ?, ?)",
      transaction_id,
      room_id,
      session_id,
      question_id,
      JSON.stringify(choices),
      JSON.stringify(thumbs),
    );
  }

  isAsked({
    room_id,
    session_id,
    question_id,
  }: Pick<SessionQuestion, "room_id" | "session_id" | "question_id">): boolean {
    const sql =
      "SELECT 1 FROM session_questions WHERE room_id = ? AND session_id = ? AND question_id = ? AND is_watched = 1";
    return this.#database.all(sql, room_id, session_id, question_id).length > 0;
  }

  /** Even if the session asks something else by now. */
  find(transaction_id: string): SessionQuestion | null {
    const sql = "SELECT * FROM session_questions WHERE transaction_id = ?";
    const [row] = this.#database.all<Stored>(sql, transaction_id);
    return row
      ? {
          ...row,
          choices: JSON.parse(row.choices) as SessionQuestion["choices"],
          thumbs: JSON.parse(row.thumbs) as SessionQuestion["thumbs"],
        }
      : null;
  }

  /** Whoever watches the session again is asked again. */
  unwatch({ room_id, session_id }: Pick<SessionQuestion, "room_id" | "session_id">): void {
    const sql = "UPDATE session_questions SET is_watched = 0 WHERE room_id = ? AND session_id = ?";
    this.#database.run(sql, room_id, session_id);
  }

  /** Deletes those whose message is no longer stored. */
  prune(): void {
    this.#database.run("DELETE FROM session_questions WHERE transaction_id NOT IN (SELECT transaction_id FROM outbox)");
  }
}
