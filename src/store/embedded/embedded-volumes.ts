import type { RecordBatch } from "apache-arrow";
import { Mutex } from "../../concurrency/mutex.ts";
import { SharedGate } from "../../concurrency/shared-gate.ts";
import type { ArchivedRange, Volume } from "../../domain/volume.ts";
import { ArchivedHistory } from "../history-pages.ts";
import type {
  EndedSession,
  QuietConversation,
  RangesOf,
  StoredMessageRow,
  StoredStepRow,
  VolumeReader,
  VolumeStore,
} from "../store.ts";
import type { Archive } from "./archive.ts";
import type { Archiver } from "./archiver.ts";
import { toBatch } from "./arrow-rows.ts";
import { among, any, type Condition } from "./condition.ts";
import { inArchive } from "./history.ts";
import type { Journal, RowWriter } from "./journal.ts";
import { charactersIn, wholePage } from "./page-size.ts";
import { checkedValues } from "./row-checksums.ts";
import { type EmbeddedTables, type HistoryName, pack, type Value, type Values } from "./tables.ts";
import type { ThreadChannel } from "./thread-channel.ts";

/** Sessions that are looked at, and rows that are read, in one call of the journal's thread. */
const PAGE = 1000;
const ENDED = "status IN ('done', 'stopped', 'error')";
const TABLE = { steps: "agent_steps", messages: "conversation_messages" } as const;

/**
 * Volumes of the embedded store, outside of the journal's thread. Reads share a gate that a move or a restore has alone, so that none
 * meets rows that have left one side and not reached the other.
 */
export class EmbeddedVolumes implements VolumeStore {
  readonly history = new ArchivedHistory(this);
  readonly gate = new SharedGate();
  /** Held while a backup is staged, and while files of volumes are removed. */
  readonly files = new Mutex();
  /** Whether any range is recorded: where none is, reads need not look. */
  hasAny = false;
  readonly #channel: ThreadChannel;
  readonly #tables: EmbeddedTables;

  constructor(channel: ThreadChannel, tables: EmbeddedTables) {
    this.#channel = channel;
    this.#tables = tables;
  }

  async load(): Promise<void> {
    this.hasAny = await this.#channel.call("volumes.any");
  }

  attach(reader: VolumeReader): void {
    this.history.attach(reader);
  }

  async list(): Promise<Volume[]> {
    return this.#channel.call("volumes.list");
  }

  async ranges(of: RangesOf): Promise<ArchivedRange[]> {
    return this.hasAny ? this.#channel.call("volumes.ranges", of) : [];
  }

  async countArchived(of: { agent_id?: string | undefined; session_id?: string | undefined }): Promise<number> {
    return this.hasAny ? this.#channel.call("volumes.countArchived", of) : 0;
  }

  async *endedSessions(before: string): AsyncGenerator<EndedSession> {
    for (let after: number | null = 0; after !== null; ) {
      const page: EndedPage = await this.#channel.call("volumes.ended", before, after);
      yield* page.sessions;
      after = page.last;
    }
  }

  async *quietConversations(before: string): AsyncGenerator<QuietConversation> {
    // Numbers of messages are known to the journal once they left it.
    await this.#channel.call("checkpoint", false);
    const isQuiet = new Map<string, boolean>();
    for (let after: number | null = 0; after !== null; ) {
      const page: ConversationsPage = await this.#channel.call("volumes.conversations", before, after);
      for (const [id, quiet] of page.conversations) isQuiet.set(id, quiet && isQuiet.get(id) !== false);
      after = page.last;
    }
    for (const [conversation_id, quiet] of isQuiet) {
      const numbers = quiet ? await this.#channel.call("volumes.numbers", conversation_id) : null;
      if (!numbers || numbers.last < numbers.first) continue;
      const [newest] = await this.#messages(conversation_id, numbers.last, numbers.last);
      if (newest && newest.created_at < before) yield { conversation_id, ...numbers };
    }
  }

  async *readSteps(sessions: readonly EndedSession[]): AsyncGenerator<StoredStepRow> {
    for (const { session_id, first } of sessions)
      for (let offset = 0; ; offset += PAGE) {
        const rows = await wholePage({ limit: PAGE, offset }, (part) =>
          this.#channel.call("history.storedSteps", session_id, first, part),
        );
        for (const values of rows) yield this.#tables.toStored("agent_steps", values);
        if (rows.length < PAGE) break;
      }
  }

  async *readMessages(conversations: readonly QuietConversation[]): AsyncGenerator<StoredMessageRow> {
    for (const { conversation_id, first, last } of conversations)
      for (let next = first; next <= last; next += PAGE)
        yield* await this.#messages(conversation_id, next, Math.min(last, next + PAGE - 1));
  }

  async #messages(conversation_id: string, first: number, last: number): Promise<StoredMessageRow[]> {
    const rows = await wholePage({ limit: last - first + 1, offset: 0 }, ({ limit, offset }) =>
      this.#channel.call("history.messages", { conversation_id, first: first + offset, limit, offset: 0 }),
    );
    return rows.map((values) => this.#tables.toStored("conversation_messages", values));
  }

  async announce(volume: Volume): Promise<void> {
    await this.#channel.call("volumes.put", volume);
  }

  async record(volume: Volume, ranges: readonly ArchivedRange[]): Promise<boolean> {
    this.hasAny = true;
    return this.#channel.call("volumes.record", volume, [...ranges]);
  }

  move(ranges: readonly ArchivedRange[]): Promise<number> {
    return this.gate.exclusively(() => this.#channel.call("volumes.move", [...ranges]));
  }

  async finish(volume_id: string): Promise<void> {
    await this.#channel.call("volumes.finish", volume_id);
  }

  async restore(
    range: ArchivedRange,
    rows: { steps: StoredStepRow[] } | { messages: StoredMessageRow[] },
  ): Promise<void> {
    const [table, stored] = "steps" in rows ? [TABLE.steps, rows.steps] : [TABLE.messages, rows.messages];
    const values = stored.map((row) => this.#tables.toValues(table, row, row));
    await this.gate.exclusively(() => this.#channel.call("volumes.restore", range, values));
  }

  droppable(before: string): Promise<Volume[]> {
    return this.#channel.call("volumes.droppable", before);
  }

  async drop(volume_id: string): Promise<void> {
    await this.gate.exclusively(() => this.#channel.call("volumes.drop", volume_id));
  }

  async forget(volume_id: string): Promise<void> {
    await this.#channel.call("volumes.forget", volume_id);
  }

  removing(work: () => Promise<void>): Promise<void> {
    return this.files.run(work);
  }

  /** Deleted rows go from the files when the tables are compacted. */
  async reclaim(): Promise<void> {
    await this.#channel.call("checkpoint", true);
  }
}

type EndedPage = { sessions: EndedSession[]; last: number | null };
type ConversationsPage = { conversations: [conversation_id: string, isQuiet: boolean][]; last: number | null };

/** The same in the journal's thread. */
export class VolumeRows {
  readonly #journal: Journal;
  readonly #archive: Archive;
  readonly #archiver: Archiver;
  #any: boolean;

  constructor(journal: Journal, archive: Archive, archiver: Archiver) {
    this.#journal = journal;
    this.#archive = archive;
    this.#archiver = archiver;
    this.#any = journal.query("SELECT 1 FROM packed_archived_ranges LIMIT 1").length > 0;
  }

  any(): boolean {
    return this.#any;
  }

  list(): Volume[] {
    return this.#volumes("ORDER BY volume_id");
  }

  ranges(of: RangesOf): ArchivedRange[] {
    if ("volume_id" in of) return this.#ranges("WHERE volume_id = ? ORDER BY range_id", of.volume_id);
    if ("agent_id" in of) return this.#ranges("WHERE agent_id = ? ORDER BY range_id", of.agent_id);
    return this.#ranges(
      "WHERE owner_id IN (SELECT value FROM json_each(?)) ORDER BY range_id",
      JSON.stringify(of.owner_ids),
    );
  }

  countArchived({ agent_id, session_id }: { agent_id?: string | undefined; session_id?: string | undefined }): number {
    const [[count] = [0]] = this.#journal.query(
      `SELECT count(DISTINCT owner_id) FROM archived_ranges WHERE kind = 'steps' AND state = 'archived'
       AND (?1 IS NULL OR agent_id = ?1) AND (?2 IS NULL OR owner_id = ?2)`,
      agent_id ?? null,
      session_id ?? null,
    );
    return Number(count);
  }

  /** Sessions in the order they were made, a page of them looked at; `last` is null at the end. */
  ended(before: string, after: number): EndedPage {
    const rows = this.#journal.query(
      `SELECT session_id, agent_id, iteration, error_rows, ended_at, parent_iteration, arrival FROM agent_state
       WHERE arrival > ? AND ${ENDED} ORDER BY arrival LIMIT ${PAGE}`,
      after,
    );
    const sessions = rows.flatMap((row): EndedSession[] => {
      const [session_id, agent_id, iteration, error_rows, ended_at, parent_iteration] = row as [
        string,
        string,
        number,
        number,
        string | null,
        number | null,
      ];
      if (ended_at === null || ended_at >= before) return [];
      const archived = this.#any ? this.#ranges("WHERE owner_id = ?", session_id) : [];
      const first = Math.max(parent_iteration ?? -1, ...archived.map(({ last }) => last)) + 1;
      const archived_error_rows = Math.max(0, ...archived.map((range) => range.error_rows));
      if (iteration < first && error_rows <= archived_error_rows) return [];
      return [{ session_id, agent_id, first, iteration, error_rows, archived_error_rows, ended_at }];
    });
    return { sessions, last: rows.length < PAGE ? null : Number(rows.at(-1)?.at(-1)) };
  }

  /** The conversations of a page of sessions, and whether the session has ended. */
  conversations(before: string, after: number): ConversationsPage {
    const rows = this.#journal.query(
      `SELECT conversation_id, ${ENDED} AND ended_at < ?, arrival FROM agent_state WHERE arrival > ? ORDER BY arrival LIMIT ${PAGE}`,
      before,
      after,
    );
    const conversations = rows.flatMap(([id, quiet]): [string, boolean][] =>
      id === null ? [] : [[id as string, quiet === 1]],
    );
    return { conversations, last: rows.length < PAGE ? null : Number(rows.at(-1)?.at(-1)) };
  }

  /** The messages that the tables have. */
  numbers(conversation_id: string): { first: number; last: number } {
    const [[last] = [0]] = this.#journal.query(
      "SELECT last FROM message_numbers WHERE conversation_id = ?",
      conversation_id,
    );
    const archived = this.#any ? this.#ranges("WHERE owner_id = ?", conversation_id) : [];
    return { first: Math.max(0, ...archived.map((range) => range.last)) + 1, last: Number(last) };
  }

  put(volume: Volume): void {
    this.#journal.changeRows((rows) => this.#put(rows, volume));
  }

  record(volume: Volume, ranges: ArchivedRange[]): boolean {
    if (this.#volumes("WHERE volume_id = ?", volume.volume_id)[0]?.state !== "writing") return false;
    this.#any = true;
    this.#journal.changeRows((rows) => {
      this.#put(rows, volume);
      for (const range of ranges) this.#putRange(rows, range);
    });
    return true;
  }

  async move(ranges: ArchivedRange[]): Promise<number> {
    // What was copied is in LanceDB then.
    await this.#archiver.checkpoint({ compact: "if due" });
    return this.#archiver.whileResting(async () => {
      const copied = ranges.filter(
        ({ range_id }) => this.#ranges("WHERE range_id = ?", range_id)[0]?.state === "copied",
      );
      const moving = copied.filter((range) => this.#isAsCopied(range));
      const [first] = moving;
      if (first) {
        const rows = moving.reduce((sum, range) => sum + range.rows, 0);
        await this.#archive.delete(
          TABLE[first.kind],
          first.kind === "steps" ? ofSessions(moving) : ofNumbers(moving),
          rows,
        );
        await this.#archive.sync(TABLE[first.kind]);
      }
      const change = (writer: RowWriter): void => {
        for (const range of moving) this.#putRange(writer, { ...range, state: "archived" });
        // VOLUMES-2
        for (const range of copied) if (!moving.includes(range)) writer.remove("archived_ranges", range.range_id);
      };
      this.#journal.markArchived(first ? [await this.#mark(TABLE[first.kind])] : [], change); // VOLUMES-1
      return moving.length;
    });
  }

  /** VOLUMES-2. Messages only ever follow. */
  #isAsCopied({ kind, owner_id, last, error_rows }: ArchivedRange): boolean {
    if (kind === "messages") return true;
    const [row] = this.#journal.query(
      `SELECT iteration, error_rows FROM agent_state WHERE session_id = ? AND ${ENDED}`,
      owner_id,
    );
    return row?.[0] === last && row[1] === error_rows;
  }

  async #mark(name: HistoryName): Promise<{ name: HistoryName; version: number; pos: number }> {
    const version = await this.#archive.version(name);
    return { name, version, pos: this.#journal.archived().get(name)?.pos ?? 0 };
  }

  finish(volume_id: string): void {
    const [volume] = this.#volumes("WHERE volume_id = ?", volume_id);
    const isMoving = this.#ranges("WHERE volume_id = ? AND state = 'copied' LIMIT 1", volume_id).length > 0;
    if (volume?.state === "moving" && !isMoving) this.put({ ...volume, state: "archived" });
  }

  async restore(range: ArchivedRange, stored: Values[]): Promise<void> {
    const name = TABLE[range.kind];
    await this.#archiver.whileResting(async () => {
      if (this.#ranges("WHERE range_id = ?", range.range_id)[0]?.state !== "archived") return;
      const rows = stored.map((values) => checkedValues(this.#archive.tables, name, values));
      const largest = Math.max(0, ...rows.map(charactersIn));
      const batches: RecordBatch[] = [];
      while (rows.length > 0) batches.push(toBatch(this.#archive.tables, name, rows.splice(0, PAGE)));
      await this.#archive.append(name, batches, largest);
      await this.#archive.sync(name);
      this.#journal.markArchived([await this.#mark(name)], (writer) =>
        writer.remove("archived_ranges", range.range_id),
      ); // VOLUMES-1
    });
  }

  droppable(before: string): Volume[] {
    const young = this.#sessionsNeededSince(before);
    return this.#volumes("WHERE state = 'archived' ORDER BY volume_id").filter(({ volume_id }) =>
      this.#ranges("WHERE volume_id = ?", volume_id).every(({ owner_id }) => !young.has(owner_id)),
    );
  }

  /** Sessions and conversations that did not end before the time, and what they were forked from. */
  #sessionsNeededSince(before: string): Set<string> {
    const parents = new Map<string, string | null>();
    const needed = new Set<string>();
    const rows = this.#journal.query(
      `SELECT session_id, parent_session_id, conversation_id, coalesce(${ENDED} AND ended_at < ?, 0) FROM agent_state`,
      before,
    ) as [string, string | null, string | null, number][];
    for (const [session_id, parent, conversation_id, isOld] of rows) {
      parents.set(session_id, parent);
      if (isOld) continue;
      needed.add(session_id);
      if (conversation_id !== null) needed.add(conversation_id);
    }
    for (const id of needed) {
      const parent = parents.get(id);
      if (parent) needed.add(parent);
    }
    return needed;
  }

  drop(volume_id: string): void {
    const [volume] = this.#volumes("WHERE volume_id = ? AND state = 'archived'", volume_id);
    if (!volume) return;
    const ranges = this.#ranges("WHERE volume_id = ?", volume_id);
    this.#journal.changeRows((rows) => {
      this.#put(rows, { ...volume, state: "dropped" });
      for (const range of ranges) this.#putRange(rows, { ...range, state: "dropped" });
    });
  }

  forget(volume_id: string): void {
    const [volume] = this.#volumes("WHERE volume_id = ?", volume_id);
    const isEmpty = this.#ranges("WHERE volume_id = ? LIMIT 1", volume_id).length === 0;
    if (volume?.state === "writing" || isEmpty) this.#journal.changeRows((rows) => rows.remove("volumes", volume_id));
  }

  #put(rows: RowWriter, volume: Volume): void {
    rows.put("volumes", pack(this.#archive.tables, "volumes", volume));
  }

  #putRange(rows: RowWriter, range: ArchivedRange): void {
    rows.put("archived_ranges", pack(this.#archive.tables, "archived_ranges", range));
  }

  #volumes(clause: string, ...values: Value[]): Volume[] {
    return this.#journal
      .snapshots("volumes", clause, ...values)
      .map((row) => this.#archive.tables.toPort("volumes", row));
  }

  #ranges(clause: string, ...values: Value[]): ArchivedRange[] {
    const rows = this.#journal.snapshots("archived_ranges", clause, ...values);
    return rows.map((row) => this.#archive.tables.toPort("archived_ranges", row));
  }
}

/** All that LanceDB has of these sessions. */
const ofSessions = (ranges: readonly ArchivedRange[]): Condition =>
  among(
    "session_id",
    ranges.map(({ owner_id }) => owner_id),
  );

const ofNumbers = (ranges: readonly ArchivedRange[]): Condition =>
  any(...ranges.map(({ owner_id, first, last }) => inArchive({ session_id: owner_id, first, last })));
