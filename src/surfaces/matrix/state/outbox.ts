import { newId } from "../../../domain/ids.ts";
import type { MessageContent } from "../outgoing/content.ts";
import type { Database } from "./database.ts";

/** What is sent first where there is a choice: answers and dialogs, before texts that only show that work goes on. */
export type Rank = "answer" | "preview";

export type OutboxRow = {
  transaction_id: string;
  device_id: string;
  room_id: string;
  content: MessageContent;
  /** The content as JSON, encrypted, once that was done: O1 is true of it as well. */
  ciphertext: string | null;
  /** The transaction id of the message that this one replaces. */
  edits: string | null;
  event_id: string | null;
  rank: Rank;
  attempts: number;
  outcome: "sent" | "failed" | null;
  /** Why it was given up. */
  error: string | null;
};

type StoredRow = Omit<OutboxRow, "content" | "rank"> & { content: string; is_preview: number };

/**
 * Messages on their way out.
 *
 * O1  Content, transaction id and device are fixed before the first try: the homeserver takes a repeated one for the same.
 * O2  A preview is marked as tried before it is, so that one that nobody has seen can be taken back.
 */
export class Outbox {
  readonly #database: Database;
  readonly #device_id: string;

  constructor(database: Database, device_id: string) {
    this.#database = database;
    this.#device_id = device_id;
  }

  /** Answers the transaction id. */
  add(
    room_id: string,
    content: MessageContent,
    { edits = null, rank = "answer" }: { edits?: string | null; rank?: Rank } = {},
  ): string {
    const transaction_id = newId();
    this.#database.run(
      "INSERT INTO outbox (transaction_id, device_id, room_id, content, edits, is_preview) VALUES (?, ?, ?, ?, ?, ?)",
      transaction_id,
      this.#device_id,
      room_id,
      JSON.stringify(content),
      edits,
      rank === "preview" ? 1 : 0,
    );
    return transaction_id;
  }

  find(transaction_id: string): OutboxRow | null {
    return rowOf(this.#database.all<StoredRow>("SELECT * FROM outbox WHERE transaction_id = ?", transaction_id)[0]);
  }

  findByEvent(event_id: string): OutboxRow | null {
    return rowOf(this.#database.all<StoredRow>("SELECT * FROM outbox WHERE event_id = ?", event_id)[0]);
  }

  /** Everything to send, oldest first. */
  open(): OutboxRow[] {
    return this.#database
      .all<StoredRow>("SELECT * FROM outbox WHERE outcome IS NULL ORDER BY position")
      .map((row) => rowOf(row) as OutboxRow);
  }

  /** The oldest of each room; rooms where an answer waits come first. However much waits in one room, all rooms are among them. */
  heads(): OutboxRow[] {
    return this.#database
      .all<StoredRow>(
        `SELECT outbox.* FROM outbox JOIN (
           SELECT min(position) AS head, min(is_preview) AS has_no_answer FROM outbox WHERE outcome IS NULL GROUP BY room_id
         ) ON position = head ORDER BY has_no_answer, position`,
      )
      .map((row) => rowOf(row) as OutboxRow);
  }

  /** O2: false where it is too late. */
  takeBack(transaction_id: string): boolean {
    return (
      this.#database.run(
        "DELETE FROM outbox WHERE transaction_id = ? AND attempts = 0 AND outcome IS NULL AND is_preview = 1",
        transaction_id,
      ).changes > 0
    );
  }

  tried(transaction_id: string): number {
    this.#database.run("UPDATE outbox SET attempts = attempts + 1 WHERE transaction_id = ?", transaction_id);
    return this.find(transaction_id)?.attempts ?? 0;
  }

  encrypted(transaction_id: string, ciphertext: string): void {
    this.#database.run("UPDATE outbox SET ciphertext = ? WHERE transaction_id = ?", ciphertext, transaction_id);
  }

  sent(transaction_id: string, event_id: string): void {
    this.#database.run(
      "UPDATE outbox SET event_id = ?, outcome = 'sent' WHERE transaction_id = ?",
      event_id,
      transaction_id,
    );
  }

  failed(transaction_id: string, error: string): void {
    this.#database.run(
      "UPDATE outbox SET outcome = 'failed', error = ? WHERE transaction_id = ?",
      error,
      transaction_id,
    );
  }
}

function rowOf(stored: StoredRow | undefined): OutboxRow | null {
  if (!stored) return null;
  const { content, is_preview, ...row } = stored;
  return { ...row, content: JSON.parse(content) as MessageContent, rank: is_preview ? "preview" : "answer" };
}
