import type { JsonValue } from "../../../domain/json.ts";
import type { Database } from "./database.ts";

/** What a watched session asks in a room, and the message that says so. */
export type SessionQuestion = {
  room_id: string;
  session_id: string;
  question_id: string;
  transaction_id: string;
  /** The values of the choices; null where it is answered in words. */
  choices: JsonValue[] | null;
};
type Stored = Omit<SessionQuestion, "choices"> & { choices: string };

/** The last question of each session in each room: it is asked once, and a reaction to the message finds it. */
export class SessionQuestions {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  set({ room_id, session_id, question_id, transaction_id, choices }: SessionQuestion): void {
    this.#database.run(
      "INSERT OR REPLACE INTO session_questions (room_id, session_id, question_id, transaction_id, choices) VALUES (?, ?, ?, ?, ?)",
      room_id,
      session_id,
      question_id,
      transaction_id,
      JSON.stringify(choices),
    );
  }

  isAsked({
    room_id,
    session_id,
    question_id,
  }: Pick<SessionQuestion, "room_id" | "session_id" | "question_id">): boolean {
    const sql = "SELECT 1 FROM session_questions WHERE room_id = ? AND session_id = ? AND question_id = ?";
    return this.#database.all(sql, room_id, session_id, question_id).length > 0;
  }

  find(transaction_id: string): SessionQuestion | null {
    const sql = "SELECT * FROM session_questions WHERE transaction_id = ?";
    const [row] = this.#database.all<Stored>(sql, transaction_id);
    return row ? { ...row, choices: JSON.parse(row.choices) as JsonValue[] | null } : null;
  }

  end({ room_id, session_id }: Pick<SessionQuestion, "room_id" | "session_id">): void {
    this.#database.run("DELETE FROM session_questions WHERE room_id = ? AND session_id = ?", room_id, session_id);
  }
}
