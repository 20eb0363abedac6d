import type { DatabaseSync } from "node:sqlite";
import { Mutex } from "../../concurrency/mutex.ts";
import type { SessionCosts } from "../../domain/cost.ts";
import { EverstepError } from "../../domain/errors.ts";
import type { Chain } from "../state-delta.ts";
import type { SessionFilter, StoreCounts, SummaryFilter } from "../store.ts";
import { Archive, ForeignWrite } from "./archive.ts";
import { Archiver, DEFAULT_TUNING, type Tuning } from "./archiver.ts";
import { type JournalTotals, verifyJournal } from "./commit-counter.ts";
import { all, compare } from "./condition.ts";
import { syncPath, undoHalfReplacement } from "./durable-files.ts";
import { WebhookRows } from "./embedded-webhooks.ts";
import { corrupt, toStoreError } from "./folder-errors.ts";
import { History } from "./history.ts";
import { Journal } from "./journal.ts";
import { LIVE } from "./journal-database.ts";
import { createTables, noteClosed, openJournalFile, wasLeftOpen } from "./journal-file.ts";
import { CHECKSUMS_SINCE, FolderFormat, type Notice, type OtherSchema, upgradeFolder } from "./migrations.ts";
import { charactersIn } from "./page-size.ts";
import { SessionLists, type SummaryRows } from "./session-lists.ts";
import { columnIndex, fromText, type Value, type Values } from "./tables.ts";
import {
  type BatchMessage,
  measureHistory,
  type OutcomeMessage,
  packError,
  type RowsMessage,
  type Size,
} from "./thread-messages.ts";

/** A session as the journal has it. `chain` is there while it is live, `context` where no chain is. */
export type LoadedSession = {
  values: Values;
  params: string;
  context: string | null;
  chain: Chain | null;
  error_rows: number;
};

export type EmbeddedStats = {
  /** Rows that were not moved into LanceDB yet. */
  backlog: number;
  /** Bytes of row text given to the journal since it was opened. */
  journal_bytes: number;
  checkpoints: number;
  compactions: number;
  /** Why the last checkpoint did not come through; it is tried again. */
  failure: string | null;
  /** Sessions whose texts are yet to be indexed; null where nobody listed any. */
  unindexed_texts: number | null;
};

/** Every row is what was written. What is missing shows when the totals are compared with those that were counted. */
function requireWhole(folder: string, database: DatabaseSync): JournalTotals {
  const { totals, damages } = verifyJournal(database);
  for (const damage of damages) throw corrupt(folder, damage);
  return totals;
}

const diedTwice = (): EverstepError =>
  new EverstepError(
    "store_refused",
    "the store's thread died twice while it wrote this, most likely for want of memory; it was not written",
    "give the process more memory, or send less at once",
  );
const positionIn = (values: Values | null): number | null => (values ? Number(values[0]) : null);
const ERROR_ROWS = columnIndex("agent_state", "error_rows");
const NOTHING: Size = { rows: 0, characters: 0 };
const plus = (a: Size, b: Size): Size => ({ rows: a.rows + b.rows, characters: a.characters + b.characters });
/** Characters of sessions that are loaded at once; one session may be more. */
const LOAD_CHARACTERS = 16 << 20;
const ACTION_ID = columnIndex("queue", "action_id");
const sizeOf = ({ values, chain, context, params }: LoadedSession): number =>
  charactersIn(values) + (chain?.size ?? 0) + (context?.length ?? 0) + params.length;

/** Everything that touches the disk. It lives in a thread of its own, so that no sync and no conversion holds up the program. */
export class StorageThread {
  readonly #journal: Journal;
  readonly #archive: Archive;
  readonly #archiver: Archiver;
  readonly history: History;
  readonly webhooks: WebhookRows;
  readonly #folder: string;
  readonly #wasLeftOpen: boolean;
  readonly #lists: SessionLists;
  readonly #writes = new Mutex();

  private constructor(
    journal: Journal,
    archive: Archive,
    archiver: Archiver,
    { lists, webhooks }: { lists: SessionLists; webhooks: WebhookRows },
    place: { folder: string; wasLeftOpen: boolean },
  ) {
    this.#lists = lists;
    this.#folder = place.folder;
    this.#wasLeftOpen = place.wasLeftOpen;
    this.#journal = journal;
    this.#archive = archive;
    this.#archiver = archiver;
    this.history = new History(journal, archive, archiver);
    this.webhooks = webhooks;
  }

  static async open(
    folder: string,
    tuning: Partial<Tuning>,
    notice: Notice,
    other: OtherSchema | null = null,
  ): Promise<StorageThread> {
    const target = new FolderFormat(other ?? undefined);
    await undoHalfReplacement(folder);
    const place = { folder, wasLeftOpen: wasLeftOpen(folder) };
    const { database, format } = openJournalFile(folder, target.number);
    let close = (): void => database.close();
    try {
      if (format !== null && format < target.number) {
        if (format >= CHECKSUMS_SINCE) requireWhole(folder, database);
        await upgradeFolder(folder, database, format, target, notice);
      }
      createTables(database, target);
      const journal = new Journal(folder, database, target.tables, requireWhole(folder, database));
      close = () => journal.close();
      await syncPath(folder);
      const archive = await Archive.open(folder, journal.archived(), target.tables);
      const archiver = new Archiver(journal, archive, { ...DEFAULT_TUNING, ...tuning }, (failure) => {
        notice(`rows could not be moved into LanceDB and are tried again: ${String(failure)}`);
        // Ends this thread: the next one begins with what was recorded.
        if (failure instanceof ForeignWrite)
          setImmediate(() => {
            throw failure;
          });
      });
      const lists = new SessionLists(folder, journal, target.tables);
      const webhooks = new WebhookRows(journal, target.tables);
      return new StorageThread(journal, archive, archiver, { lists, webhooks }, place);
    } catch (error) {
      close();
      if (!place.wasLeftOpen) noteClosed(folder);
      throw toStoreError(error, folder);
    }
  }

  /** Groups are written one after the other, in the order they came. */
  apply(batches: BatchMessage[]): Promise<OutcomeMessage[]> {
    return this.#writes.run(async () => {
      await this.#archiver.room();
      return this.#applyGroup(batches);
    });
  }

  /**
   * What the thread before this one had under way when it died: batches that it wrote are answered as written, the others
   * are written now, unless they may be what it died of.
   */
  reapply(batches: BatchMessage[], mayWrite: boolean): Promise<OutcomeMessage[]> {
    return this.#writes.run(async () => {
      const outcomes: OutcomeMessage[] = [];
      for (const batch of batches) {
        if (await this.#wasWritten(batch)) outcomes.push({ kind: "committed" });
        else if (mayWrite) outcomes.push(...this.#applyGroup([batch]));
        else outcomes.push({ kind: "failed", error: packError(diedTwice()) });
      }
      return outcomes;
    });
  }

  /** By its first row: nobody but a later batch can have replaced it, and that was written after this one. */
  async #wasWritten({ first, ...rows }: BatchMessage): Promise<boolean> {
    const position = await this.#positionOfFirst(rows);
    return position !== null && position >= first;
  }

  async #positionOfFirst(rows: RowsMessage): Promise<number | null> {
    const [session, message, action] = [rows.sessions?.[0], rows.conversation_messages?.[0], rows.actions?.[0]];
    if (session) return this.#journal.positionOf("agent_state", session.packed.named[0] as string);
    if (message) return positionIn(await this.history.message(message.named[0] as string));
    if (action) return positionIn(await this.history.action(action.packed.named[0] as string));
    const conversation = rows.conversations?.[0];
    if (conversation) return this.#journal.positionOf("conversations", conversation.packed.named[0] as string);
    for (const name of ["conversation_participants", "session_cursors", "agent_config"] as const) {
      const [row] = rows[name] ?? [];
      if (row) return this.#journal.positionOf(name, row.named[0] as string);
    }
    return null;
  }

  /** The position of the last row that was written. */
  position(): number {
    return this.#journal.position;
  }

  /** One transaction, or one for each batch where that fails, so that none spoils the others. */
  #applyGroup(batches: BatchMessage[]): OutcomeMessage[] {
    try {
      const outcomes = this.#journal.apply(batches);
      const written = batches.filter((_, index) => outcomes[index]?.kind === "committed");
      this.#archiver.added(written.map(measureHistory).reduce(plus, NOTHING));
      this.#lists.catchUp();
      return outcomes;
    } catch (error) {
      if (batches.length === 1) return [{ kind: "failed", error: packError(error) }];
      return batches.flatMap((batch) => this.#applyGroup([batch]));
    }
  }

  /** Whether the process that had the folder before this one died. */
  wasLeftOpen(): boolean {
    return this.#wasLeftOpen;
  }

  /** Live sessions in the order they were made, a page at a time; -1 is the last page's end. */
  loadLive(after: number, limit: number): { sessions: LoadedSession[]; last: number } {
    const ids = this.#journal.query(
      `SELECT session_id, arrival FROM agent_state WHERE arrival > ? AND status IN (${LIVE}) ORDER BY arrival LIMIT ?`,
      after,
      limit,
    );
    const sessions: LoadedSession[] = [];
    let characters = 0;
    for (const [id, arrival] of ids) {
      const loaded = this.#load(id as string);
      if (!loaded) continue;
      sessions.push(loaded);
      characters += sizeOf(loaded);
      if (characters > LOAD_CHARACTERS) return { sessions, last: Number(arrival) };
    }
    return { sessions, last: Number(ids.at(-1)?.[1] ?? -1) };
  }

  /** Open actions after an id, as many as are loaded at once; `last` is null at their end. */
  loadPending(after: string): { actions: Values[]; last: string | null } {
    const actions: Values[] = [];
    let characters = 0;
    const open = all(compare("processed", "=", 0), compare("action_id", ">", after));
    for (const row of this.#journal.each("open_actions", open, "action_id")) {
      actions.push(row);
      characters += charactersIn(row);
      if (characters > LOAD_CHARACTERS) return { actions, last: row[ACTION_ID] as string };
    }
    return { actions, last: null };
  }

  /** The first of these, as many as are loaded at once, and how many ids that are. */
  loadSessions(session_ids: string[]): { sessions: LoadedSession[]; count: number } {
    const sessions: LoadedSession[] = [];
    let characters = 0;
    for (const [index, id] of session_ids.entries()) {
      const loaded = this.#load(id);
      if (!loaded) continue;
      sessions.push(loaded);
      characters += sizeOf(loaded);
      if (characters > LOAD_CHARACTERS) return { sessions, count: index + 1 };
    }
    return { sessions, count: session_ids.length };
  }

  /** The ids of sessions in the list's order. */
  sessionIds({ status, ...filter }: SessionFilter, asking: string[]): Promise<string[]> {
    return this.#lists.ids(status === undefined ? filter : { ...filter, statuses: [status] }, asking);
  }

  sessionSummaries(filter: SummaryFilter, asking: string[]): Promise<SummaryRows> {
    return this.#lists.summaries(filter, asking);
  }

  /** Agents by id with the number of their sessions and the newest one's id. */
  async agents(
    only: string | null,
    limit: number,
    offset: number,
  ): Promise<{ agent_id: string; session_count: number; latest: string }[]> {
    const agents = only === null ? await this.#lists.agents(limit, offset) : await this.#agent(only);
    return agents.map(([agent_id, session_count]) => {
      const latest = "SELECT session_id FROM agent_state WHERE agent_id = ? ORDER BY arrival DESC LIMIT 1";
      const [session_id] = this.#journal.query(latest, agent_id)[0] as [string];
      return { agent_id, session_count, latest: session_id };
    });
  }

  async #agent(agent_id: string): Promise<[agent_id: string, count: number][]> {
    const count = await this.#lists.sessionCount(agent_id);
    return count === 0 ? [] : [[agent_id, count]];
  }

  /** The session that moved last among those of an agent that have a step. */
  lastUpdatedSession(agent_id: string): string | null {
    const row = this.#journal.query(
      "SELECT session_id FROM agent_state WHERE agent_id = ? AND (iteration >= 0 OR error_rows > 0) ORDER BY pos DESC LIMIT 1",
      agent_id,
    )[0];
    return (row?.[0] as string) ?? null;
  }

  agentConfig(agent_id: string): Values | null {
    return this.#journal.snapshots("agent_config", "WHERE agent_id = ?", agent_id)[0] ?? null;
  }

  agentConfigs(limit: number, offset: number): Values[] {
    return this.#journal.snapshots("agent_config", "ORDER BY agent_id LIMIT ? OFFSET ?", limit, offset);
  }

  conversation(conversation_id: string): Values | null {
    return this.#journal.snapshots("conversations", "WHERE conversation_id = ?", conversation_id)[0] ?? null;
  }

  conversations(status: Value, tag: Value, limit: number, offset: number): Values[] {
    return this.#journal.snapshots(
      "conversations",
      `WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?2))
       ORDER BY arrival DESC LIMIT ?3 OFFSET ?4`,
      status,
      tag,
      limit,
      offset,
    );
  }

  participant(participant_id: string): Values | null {
    return this.#journal.snapshots("conversation_participants", "WHERE participant_id = ?", participant_id)[0] ?? null;
  }

  participants(conversation_id: string): Values[] {
    return this.#journal.snapshots(
      "conversation_participants",
      "WHERE conversation_id = ? ORDER BY arrival",
      conversation_id,
    );
  }

  cursor(key: string): Values | null {
    return this.#journal.snapshots("session_cursors", "WHERE cursor_key = ?", key)[0] ?? null;
  }

  sessionCosts(since: string): SessionCosts[] {
    const rows = this.#journal.query(
      `SELECT substr(created_at, 1, 10), agent_id, options ->> '$.model', count(*), sum(tokens_used), sum(cost_usd)
       FROM agent_state WHERE created_at >= ? AND tokens_used > 0 GROUP BY 1, 2, 3`,
      since,
    );
    return rows.map(([day, agent_id, model, sessions, tokens_used, cost_usd]) => ({
      day: String(day),
      agent_id: fromText(String(agent_id)),
      model: model === null ? null : String(model),
      sessions: Number(sessions),
      tokens_used: Number(tokens_used),
      cost_usd: Number(cost_usd),
    }));
  }

  sessionCounts(): Promise<StoreCounts["sessions"]> {
    return this.#lists.counts();
  }

  async checkpoint(compact: boolean): Promise<void> {
    await this.#archiver.checkpoint({ compact });
  }

  stats(): EmbeddedStats {
    const { backlog, checkpoints, compactions, failure } = this.#archiver;
    const unindexed_texts = this.#lists.unindexedTexts();
    return { backlog, journal_bytes: this.#journal.bytes, checkpoints, compactions, failure, unindexed_texts };
  }

  /** Leaves everything in LanceDB. Where that fails, on a full disk say, the journal keeps the rows for the next start. */
  async close(): Promise<void> {
    await this.#writes.run(async () => {});
    try {
      await this.#archiver.checkpoint({ compact: false });
    } catch {
      // Nothing is lost: see above.
    }
    await this.#archiver.close();
    this.#archive.close();
    await this.#lists.close();
    // While the folder is still held: nobody else has written the note anew.
    noteClosed(this.#folder);
    this.#journal.close();
  }

  /** Awaits the move under way. Nothing waits for another one then. */
  async stopArchiving(): Promise<void> {
    await this.#archiver.close();
  }

  #load(id: string): LoadedSession | null {
    const values = this.#journal.snapshots("agent_state", "WHERE session_id = ?", id)[0];
    if (!values) return null;
    const chain = this.#journal.chain(values);
    const { params, context } = this.#journal.documents(id);
    return { values, params, context: chain ? null : context, chain, error_rows: Number(values[ERROR_ROWS]) };
  }
}
