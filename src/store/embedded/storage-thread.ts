import type { DatabaseSync } from "node:sqlite";
import { Mutex } from "../../concurrency/mutex.ts";
import type { SessionCosts } from "../../domain/cost.ts";
import { EverstepError } from "../../domain/errors.ts";
import { syncPath } from "../../files/sync-path.ts";
import type { Chain } from "../state-delta.ts";
import type { SessionFilter, StoreCounts, SummaryFilter } from "../store.ts";
import { Archive, ForeignWrite } from "./archive.ts";
import { Archiver, DEFAULT_TUNING, type Tuning } from "./archiver.ts";
import { type JournalTotals, verifyJournal } from "./commit-counter.ts";
import { all, compare } from "./condition.ts";
import { removeStaged, stageCopy, undoHalfReplacement } from "./data-folder.ts";
import { VolumeRows } from "./embedded-volumes.ts";
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
  fromSent,
  measureHistory,
  type OutcomeMessage,
  packError,
  type RowsMessage,
  type SentBatch,
} from "./thread-messages.ts";

/** A session as the journal has it. `chain` is set while it is live, `context` if there is no chain. */
export type LoadedSession = {
  values: Values;
  params: string;
  context: string | null;
  chain: Chain | null;
  error_rows: number;
};

export type EmbeddedStats = {
  /** Rows not archived yet. */
  backlog: number;
  /** Bytes of row text written to the journal since it was opened. */
  journal_bytes: number;
  checkpoints: number;
  compactions: number;
  /** Why the last checkpoint failed; it is retried. */
  failure: string | null;
  /** Sessions whose texts are not indexed yet; null if nobody listed any. */
  unindexed_texts: number | null;
};

/** Requires that every row is undamaged. Missing rows show when the totals are compared with the recorded ones. */
function requireWhole(folder: string, database: DatabaseSync): JournalTotals {
  const { totals, damages } = verifyJournal(database);
  for (const damage of damages) throw corrupt(folder, damage);
  return totals;
}

const diedTwice = (): EverstepError =>
  new EverstepError(
    "store_refused",
    "the store's thread died twice while writing this, most likely out of memory; it was not written",
    "give the process more memory, or send less at once",
  );
const positionIn = (values: Values | null): number | null => (values ? Number(values[0]) : null);
const ERROR_ROWS = columnIndex("agent_state", "error_rows");
/** Characters of sessions loaded at once; a single session may be larger. */
const LOAD_CHARACTERS = 16 << 20;
const ACTION_ID = columnIndex("queue", "action_id");
const sizeOf = ({ values, chain, context, params }: LoadedSession): number =>
  charactersIn(values) + (chain?.size ?? 0) + (context?.length ?? 0) + params.length;

/** Everything that touches the disk. It runs in its own thread, so that no sync and no conversion blocks the program. */
export class StorageThread {
  readonly #journal: Journal;
  readonly #archive: Archive;
  readonly #archiver: Archiver;
  readonly history: History;
  readonly webhooks: WebhookRows;
  readonly volumes: VolumeRows;
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
    this.volumes = new VolumeRows(journal, archive, archiver);
    this.history = new History(journal, archive, archiver, () => this.volumes.any());
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
      await removeStaged(folder);
      const archive = await Archive.open(folder, journal.archived(), target.tables);
      if (place.wasLeftOpen) await archive.removeLeftovers();
      const archiver = new Archiver(journal, archive, { ...DEFAULT_TUNING, ...tuning }, (failure) => {
        notice(`rows could not be moved into LanceDB, which is retried: ${String(failure)}`);
        // Ends this thread: the next one starts from what was recorded.
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

  /** Groups are written one after the other, in order. Returns null if every batch was committed. */
  apply(group: SentBatch[]): Promise<OutcomeMessage[] | null> {
    return this.#writes.run(async () => {
      await this.#archiver.room();
      const outcomes = this.#applyGroup(group.map(fromSent));
      return outcomes.every(({ kind }) => kind === "committed") ? null : outcomes;
    });
  }

  /**
   * Handles the commits in progress when the previous thread died: batches that it wrote are reported as committed, the others
   * are written now, unless they may be what killed it.
   */
  reapply(group: SentBatch[], mayWrite: boolean): Promise<OutcomeMessage[]> {
    return this.#writes.run(async () => {
      const outcomes: OutcomeMessage[] = [];
      for (const batch of group.map(fromSent)) {
        if (await this.#wasWritten(batch)) outcomes.push({ kind: "committed" });
        else if (mayWrite) outcomes.push(...this.#applyGroup([batch]));
        else outcomes.push({ kind: "failed", error: packError(diedTwice()) });
      }
      return outcomes;
    });
  }

  /** By its first row: only a later batch can have replaced it, and that was written after this one. */
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

  /** The position of the last written row. */
  position(): number {
    return this.#journal.position;
  }

  /** One transaction, or one per batch if that fails, so that none spoils the others. */
  #applyGroup(batches: BatchMessage[]): OutcomeMessage[] {
    try {
      const outcomes = this.#journal.apply(batches);
      const written = batches.filter((_, index) => outcomes[index]?.kind === "committed");
      this.#archiver.added(measureHistory(written));
      this.#lists.catchUp();
      return outcomes;
    } catch (error) {
      if (batches.length === 1) return [{ kind: "failed", error: packError(error) }];
      return batches.flatMap((batch) => this.#applyGroup([batch]));
    }
  }

  /** Whether the previous process that used the folder died. */
  wasLeftOpen(): boolean {
    return this.#wasLeftOpen;
  }

  /** Live sessions in order of creation, a page at a time; `last` is -1 at the end. */
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

  /** Open actions after an id, as many as are loaded at once; `last` is null at the end. */
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

  /** The first of these sessions, as many as are loaded at once, and how many ids that covers. */
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

  /** Agents by id with their session counts and the newest session's id. */
  async agents(
    only: string | null,
    limit: number,
    offset: number,
  ): Promise<{ agent_id: string; counts: StoreCounts["sessions"]; latest: string }[]> {
    const agents = only === null ? await this.#lists.agents(limit, offset) : await this.#agent(only);
    return agents.map(([agent_id, counts]) => {
      const latest = "SELECT session_id FROM agent_state WHERE agent_id = ? ORDER BY arrival DESC LIMIT 1";
      const [session_id] = this.#journal.query(latest, agent_id)[0] as [string];
      return { agent_id, counts, latest: session_id };
    });
  }

  async #agent(agent_id: string): Promise<[agent_id: string, counts: StoreCounts["sessions"]][]> {
    const counts = await this.#lists.agentCounts(agent_id);
    return Object.values(counts).every((count) => count === 0) ? [] : [[agent_id, counts]];
  }

  /** The most recently written session of an agent that has a step. */
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
    await this.#archiver.checkpoint({ compact: compact ? "all" : "if due" });
  }

  /** A copy of everything written so far, in its own folder. */
  stageCopy(): Promise<string> {
    const copyJournal = (to: string) => this.#journal.copyTo(to);
    return this.#archiver.whileResting(() =>
      this.#journal.withoutCheckpoints(() => stageCopy(this.#folder, copyJournal)),
    );
  }

  removeStaged(): Promise<void> {
    return removeStaged(this.#folder);
  }

  stats(): EmbeddedStats {
    const { backlog, checkpoints, compactions, failure } = this.#archiver;
    const unindexed_texts = this.#lists.unindexedTexts();
    return { backlog, journal_bytes: this.#journal.bytes, checkpoints, compactions, failure, unindexed_texts };
  }

  /** Archives everything. If that fails, for example on a full disk, the journal keeps the rows for the next start. */
  async close(): Promise<void> {
    await this.#writes.run(async () => {});
    try {
      await this.#archiver.checkpoint({ compact: "never" });
    } catch {
      // Nothing is lost: see above.
    }
    await this.#archiver.close();
    this.#archive.close();
    await this.#lists.close();
    // While the folder is still locked: nobody else can have written the note again.
    noteClosed(this.#folder);
    this.#journal.close();
  }

  /** Waits for the checkpoint in progress; no other one follows. */
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
