import { newId } from "../../../domain/ids.ts";
import { inThread, type MessageContent } from "../outgoing/content.ts";
import { plainNotice } from "../outgoing/plain-notice.ts";
import type { Database } from "./database.ts";

/** Priority: answers and dialogs before previews. */
export type Rank = "answer" | "preview";

export type OutboxRow = {
  transaction_id: string;
  device_id: string;
  room_id: string;
  /** A message, a reaction to an event, or the redaction of an earlier row. */
  kind: "message" | "reaction" | "redaction";
  /** For a reaction, the emoji is the body. */
  content: MessageContent;
  /** The target of a reaction or redaction: an event, or the transaction id of an earlier row. */
  target: string | null;
  /** The encrypted content as JSON, once it was encrypted: MATRIX-OUTBOX-1 applies to it as well. */
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
 * MATRIX-OUTBOX-1  Content, transaction id and device are fixed before the first attempt: the homeserver recognizes a repeated one.
 * MATRIX-OUTBOX-2  A preview is marked as tried before the attempt, so one that nobody has seen can be taken back.
 */
export class Outbox {
  readonly #database: Database;
  readonly #device_id: string;

  constructor(database: Database, device_id: string) {
    this.#database = database;
    this.#device_id = device_id;
  }

  /** `thread`: the first event of its thread. Returns the transaction id. */
  add(
    room_id: string,
    content: MessageContent,
    {
      edits = null,
      rank = "answer",
      thread = null,
    }: { edits?: string | null; rank?: Rank; thread?: string | null } = {},
  ): string {
    const transaction_id = newId();
    this.#database.run(
      "INSERT INTO outbox (transaction_id, device_id, room_id, content, edits, is_preview) VALUES (?, ?, ?, ?, ?, ?)",
      transaction_id,
      this.#device_id,
      room_id,
      JSON.stringify(thread === null ? content : inThread(content, thread)),
      edits,
      rank === "preview" ? 1 : 0,
    );
    return transaction_id;
  }

  /** Reacts to an event, or to the message of an earlier row. Returns the transaction id. */
  react(room_id: string, target: string, sign: string, rank: Rank = "answer"): string {
    return this.#about("reaction", { room_id, target, body: sign, rank });
  }

  /** Redacts what an earlier row sent; a row that was not tried yet is never sent. */
  remove(room_id: string, transaction_id: string): void {
    if (this.takeBack(transaction_id)) return;
    this.#about("redaction", { room_id, target: transaction_id, body: "", rank: "answer" });
  }

  #about(
    kind: "reaction" | "redaction",
    { room_id, target, body, rank }: { room_id: string; target: string; body: string; rank: Rank },
  ): string {
    const transaction_id = this.add(room_id, plainNotice(body), { rank });
    this.#database.run("UPDATE outbox SET kind = ?, target = ? WHERE transaction_id = ?", kind, target, transaction_id);
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

  /** The oldest row of each room; rooms with a waiting answer come first. */
  heads(): OutboxRow[] {
    return this.#database
      .all<StoredRow>(
        `SELECT outbox.* FROM outbox JOIN (
           SELECT min(position) AS head, min(is_preview) AS has_no_answer FROM outbox WHERE outcome IS NULL GROUP BY room_id
         ) ON position = head ORDER BY has_no_answer, position`,
      )
      .map((row) => rowOf(row) as OutboxRow);
  }

  /** MATRIX-OUTBOX-2: false if it is too late. */
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

  /** Moves an unsent row to another room, without its relation: the related event is not there. */
  move(transaction_id: string, room_id: string): void {
    this.#database.run(
      "UPDATE outbox SET room_id = ?, edits = NULL, ciphertext = NULL, attempts = 0, content = json_remove(content, '$.\"m.relates_to\"') WHERE transaction_id = ?",
      room_id,
      transaction_id,
    );
  }

  failed(transaction_id: string, error: string): void {
    this.#database.run(
      "UPDATE outbox SET outcome = 'failed', error = ? WHERE transaction_id = ? AND outcome IS NULL",
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
