import { setImmediate as nextTick } from "node:timers/promises";
import { words } from "../../domain/words.ts";
import { type Ancestor, iterationsOf, lineageOf, pageParts, type Stretch } from "../history-pages.ts";
import type { ActionFilter, MessageFilter, Page, SearchQuery, StepFilter } from "../store.ts";
import type { Archive, Order } from "./archive.ts";
import type { Archiver } from "./archiver.ts";
import { sortKey } from "./arrow-rows.ts";
import { all, any, type Condition, compare } from "./condition.ts";
import type { Journal } from "./journal.ts";
import { LimitedPages, type PagePart, PageSize } from "./page-size.ts";
import { columnIndex, type HistoryName, type Value, type Values } from "./tables.ts";
import type { Size } from "./thread-messages.ts";

/** A page of steps, each with the steps its state is rebuilt from if the page lacks them. */
export type StepPage = { step: Values; bases: Values[] }[];
type SearchedTable = "agent_steps" | "conversation_messages";
export type MatchedRow = { table: SearchedTable; score: number; values: Values };

/**
 * Reads the append-only tables. Rows up to the archived position come from LanceDB, later ones from the journal; the position
 * is read once per query, so that a concurrent checkpoint neither hides nor duplicates a row.
 */
export class History {
  readonly #journal: Journal;
  readonly #archive: Archive;
  readonly #archiver: Archiver;
  readonly #pages = new LimitedPages();
  /** Whether rows may have left for volumes. */
  readonly #hasVolumes: () => boolean;

  constructor(journal: Journal, archive: Archive, archiver: Archiver, hasVolumes: () => boolean) {
    this.#hasVolumes = hasVolumes;
    this.#journal = journal;
    this.#archive = archive;
    this.#archiver = archiver;
  }

  steps(filter: StepFilter): Promise<PagePart<StepPage[number]>> {
    const of = "agent_id" in filter ? `agent ${filter.agent_id}` : `session ${filter.session_id}`;
    return this.#pages.read(of, filter.limit, (size) => this.#steps(filter, size));
  }

  async #steps(filter: StepFilter, size: PageSize): Promise<StepPage> {
    const conditions = all(compare("created_at", ">=", filter.since_created_at), compare("status", "=", filter.status));
    if ("agent_id" in filter) {
      const { from, to } = iterationsOf(filter);
      const where = all(
        compare("agent_id", "=", filter.agent_id),
        compare("iteration", ">=", from),
        compare("iteration", "<=", to),
        conditions,
      );
      const sides = { journal: where, archive: where };
      return this.#withBases(await this.#page("agent_steps", sides, BY_ITERATION, { ...filter, size }), size);
    }
    const { parts, first, offset, isExact } = pageParts(filter, lineageOf(this.line(filter.session_id)));
    const where = {
      journal: all(any(...parts.map((part) => this.#inJournal(part))), conditions),
      archive: all(any(...parts.map(inArchive)), conditions),
      shape: isExact ? ("range" as const) : ("arrival" as const),
    };
    const steps = await this.#page("agent_steps", where, BY_ITERATION, { limit: filter.limit, offset, size });
    if (isExact) this.#requireNoGaps("agent_steps", steps, STEP.iteration, first);
    return this.#withBases(steps, size);
  }

  /** With `first`, those from a number on. */
  messages(filter: MessageFilter & { first?: number }): Promise<PagePart<Values>> {
    const of = `conversation ${filter.conversation_id}`;
    return this.#pages.read(of, filter.limit, (size) => this.#messages(filter, size));
  }

  async #messages(filter: MessageFilter & { first?: number }, size: PageSize): Promise<Values[]> {
    const { conversation_id, since, after, limit, offset } = filter;
    const from = filter.first ?? (after === undefined ? 1 : await this.#numberAfter(conversation_id, after));
    if (from === null) return [];
    const dense = since === undefined;
    const first = dense ? from + offset : from;
    const last = dense ? first + limit - 1 : LAST_NUMBER;
    const conditions = compare("created_at", ">=", since);
    const journal = all(
      this.#journal.only("conversation_messages", "conversation_id", conversation_id),
      compare("number", ">=", first),
      compare("number", "<=", last),
      conditions,
    );
    const archive = all(...keyRange(conversation_id, first, last), conditions);
    const where = { journal, archive, shape: dense ? ("range" as const) : ("arrival" as const) };
    const messages = await this.#page("conversation_messages", where, BY_NUMBER, {
      limit,
      offset: dense ? 0 : offset,
      size,
    });
    if (dense) this.#requireNoGaps("conversation_messages", messages, NUMBER_OF_MESSAGE, first);
    return messages;
  }

  async message(message_id: string): Promise<Values | null> {
    const where = {
      journal: this.#journal.only("conversation_messages", "message_id", message_id),
      archive: compare("message_id", "=", message_id),
    };
    const message = (await this.#page("conversation_messages", where, BY_NUMBER, one()))[0];
    if (!message && this.#journal.wasMessage(message_id) && !this.#hasVolumes())
      throw this.#archive.missing("conversation_messages", `message ${message_id} is missing`);
    return message ?? null;
  }

  async action(action_id: string): Promise<Values | null> {
    const archive = compare("action_id", "=", action_id);
    const open = this.#journal.read("open_actions", archive, "action_id", 1)[0];
    const journal = this.#journal.only("queue", "action_id", action_id);
    return open ?? (await this.#page("queue", { journal, archive }, NEWEST_ACTION, one()))[0] ?? null;
  }

  /** Each action's row, or null if there is none. */
  actionsById(action_ids: string[]): Promise<PagePart<Values | null>> {
    return this.#pages.read("actions", action_ids.length, async (size) => {
      const rows: (Values | null)[] = [];
      for (const id of action_ids) {
        const values = await this.action(id);
        size.add(values ?? []);
        rows.push(values);
      }
      return rows;
    });
  }

  actions(filter: ActionFilter): Promise<PagePart<Values>> {
    const of = `actions ${filter.session_id} ${filter.agent_id}`;
    return this.#pages.read(of, filter.limit, (size) => this.#actions(filter, size));
  }

  async #actions({ session_id, agent_id, processed, limit, offset }: ActionFilter, size: PageSize): Promise<Values[]> {
    const where = all(
      compare("session_id", "=", session_id),
      compare("agent_id", "=", agent_id),
      // An unprocessed action is not final, so it can only be among the open ones.
      processed === undefined ? undefined : compare("processed", "=", Number(processed)),
    );
    const open = this.#journal.read("open_actions", where, "action_id DESC", offset + limit, size);
    const inLance = all(compare("session_id", "=", session_id), compare("agent_id", "=", agent_id));
    const settled =
      processed === false
        ? []
        : await this.#page("queue", { journal: where, archive: inLance }, NEWEST_ACTION, { limit, offset, size }, open);
    return processed === false ? open.slice(offset, offset + limit) : settled;
  }

  async search({ q, agent_id, session_id, limit }: SearchQuery): Promise<MatchedRow[]> {
    const queryWords = [...new Set(words(q))];
    if (queryWords.length === 0) return [];
    const where = all(compare("agent_id", "=", agent_id), compare("session_id", "=", session_id));
    const hits: MatchedRow[] = [];
    for (const table of ["agent_steps", "conversation_messages"] as const) {
      const archived = this.#archiver.archivedUpTo.get(table) ?? 0;
      hits.push(...(await this.#searchWaiting(table, archived, where, queryWords, limit)));
      const inLance = all(compare("pos", "<=", archived), where);
      const omitted = table === "agent_steps" ? STATE : null;
      for (const hit of await this.#archive.search(table, queryWords, inLance, limit, omitted))
        hits.push({ table, ...hit });
    }
    return hits.sort((a, b) => b.score - a.score).slice(0, limit);
  }

  /** The best matches among the newest unarchived rows, read in small pages. */
  async #searchWaiting(
    table: SearchedTable,
    archived: number,
    where: Condition,
    queryWords: string[],
    limit: number,
  ): Promise<MatchedRow[]> {
    let hits: MatchedRow[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    for (let rows = 0, characters = 0; rows < SEARCH_WINDOW.rows && characters < SEARCH_WINDOW.characters; ) {
      const next = all(compare("pos", ">", archived), compare("pos", "<", before), compare("text", ">", ""), where);
      const page = this.#journal.newest(table, next, SEARCH_PAGE);
      for (const values of page.rows) {
        const score = scoreOf(words(values[TEXT[table]] as string), queryWords);
        // A hit does not include the state, which may be large.
        if (score > 0) hits.push({ table, score, values: table === "agent_steps" ? values.with(STATE, null) : values });
      }
      hits = hits.sort((a, b) => b.score - a.score).slice(0, limit);
      rows += page.rows.length;
      characters += page.characters;
      before = Number(page.rows.at(-1)?.[0] ?? 0);
      if (page.rows.length === 0) break;
      await nextTick();
    }
    return hits;
  }

  /** Rows of a session's own from an iteration on, as they are stored. */
  storedSteps(session_id: string, first: number, { limit, offset }: Page): Promise<PagePart<Values>> {
    const own = { session_id, first, last: LAST_NUMBER };
    const where = { journal: this.#inJournal(own), archive: inArchive(own), shape: "arrival" as const };
    return this.#pages.read(`session ${session_id}`, limit, (size) =>
      this.#page("agent_steps", where, BY_ITERATION, { limit, offset, size }),
    );
  }

  /** The session, its parent, and so on. */
  line(session_id: string): Ancestor[] {
    const line: Ancestor[] = [];
    for (let id: string | null = session_id; id !== null; ) {
      const [row]: Values[] = this.#journal.query(
        "SELECT parent_session_id, parent_iteration, error_rows FROM agent_state WHERE session_id = ?",
        id,
      );
      const [parent, fork, errors] = row ?? [null, null, 0];
      line.push({
        session_id: id,
        parent_iteration: parent === null ? null : Number(fork),
        error_rows: Number(errors),
      });
      id = parent as string | null;
    }
    return line;
  }

  async #numberAfter(conversation_id: string, message_id: string): Promise<number | null> {
    const message = await this.message(message_id);
    return message?.[CONVERSATION_OF_MESSAGE] === conversation_id ? Number(message[NUMBER_OF_MESSAGE]) + 1 : null;
  }

  /** One page of rows from both sides, in order. `more` are rows from neither side to merge in. */
  async #page(
    table: HistoryName,
    where: Sides,
    order: RowOrder,
    { limit, offset, size }: { limit: number; offset: number; size: PageSize },
    more: Values[] = [],
  ): Promise<Values[]> {
    const archived = this.#archiver.archivedUpTo.get(table) ?? 0;
    const waiting = all(compare("pos", ">", archived), where.journal);
    const late = [...this.#journal.read(table, waiting, order.sql, offset + limit, size), ...more];
    const lateCount = offset === 0 ? 0 : this.#journal.count(table, waiting) + more.length;
    // At most `lateCount` of the rows before the page are in the journal, so LanceDB can skip the others.
    const skip = Math.max(0, offset - lateCount);
    const early = await this.#archive.read(
      table,
      // Both are expensive in LanceDB, and done below instead.
      where.shape ? where.archive : all(compare("pos", "<=", archived), where.archive),
      where.shape === "range" ? [] : order.lance,
      { limit: limit + offset - skip, offset: skip, size },
    );
    return [...early.filter(([pos]) => Number(pos) <= archived), ...late]
      .sort(order.compare)
      .slice(offset - skip, offset - skip + limit);
  }

  /** Iterations and numbers are dense, so a row hidden by a damaged index shows. */
  #requireNoGaps(table: HistoryName, rows: Values[], column: number, first: number): void {
    const at = rows.findIndex((row, index) => row[column] !== first + index);
    if (at >= 0) throw this.#archive.missing(table, `the row before position ${rows[at]?.[0]} is missing`);
  }

  #inJournal({ session_id, first, last }: Stretch): Condition {
    const rows = this.#journal.only("agent_steps", "session_id", session_id);
    return all(rows, compare("iteration", ">=", first), compare("iteration", "<=", Math.min(last, LAST_NUMBER)));
  }

  async #withBases(steps: Values[], size: PageSize): Promise<StepPage> {
    const inPage = new Set(
      steps
        .filter((step) => step[STEP.status] === "ok")
        .map((step) => `${step[STEP.iteration]} ${step[STEP.session_id]}`),
    );
    return Promise.all(
      steps.map(async (step) => {
        const iteration = Number(step[STEP.iteration]);
        const isRebuilt = step[STEP.state_kind] === "delta" && !inPage.has(`${iteration - 1} ${step[STEP.session_id]}`);
        return { step, bases: isRebuilt ? await this.#stepsBefore(step, size) : [] };
      }),
    );
  }

  async #stepsBefore(step: Values, size: PageSize): Promise<Values[]> {
    const stretch = {
      session_id: step[STEP.session_id] as string,
      first: Number(step[STEP.base_iteration]),
      last: Number(step[STEP.iteration]) - 1,
    };
    const ok = compare("status", "=", "ok");
    const where = {
      journal: all(this.#inJournal(stretch), ok),
      archive: all(inArchive(stretch), ok),
      shape: "range" as const,
    };
    const count = stretch.last - stretch.first + 1;
    const steps = await this.#page("agent_steps", where, BY_ITERATION, { limit: count, offset: 0, size });
    if (steps.length < count) throw this.#archive.missing("agent_steps", `${count - steps.length} steps are missing`);
    return steps;
  }
}

/**
 * The conditions for each side. A `range` has no more rows than the page, so they can be sorted later. In order of `arrival`
 * unarchived rows come last, so they can be filtered out later.
 */
type Sides = { journal: Condition; archive: Condition; shape?: "range" | "arrival" };
const one = () => ({ limit: 1, offset: 0, size: new PageSize(1) });
/** The largest number that fits a sort key's twelve digits. */
const LAST_NUMBER = 999_999_999_999;
/** How much of the journal a search reads, newest first, and how much of it at once. */
const SEARCH_WINDOW: Size = { rows: 20_000, characters: 64 << 20 };
const SEARCH_PAGE: Size = { rows: 1000, characters: 2 << 20 };

const STEP = {
  session_id: columnIndex("agent_steps", "session_id"),
  iteration: columnIndex("agent_steps", "iteration"),
  status: columnIndex("agent_steps", "status"),
  state_kind: columnIndex("agent_steps", "state_kind"),
  base_iteration: columnIndex("agent_steps", "base_iteration"),
};
const STATE = columnIndex("agent_steps", "state");
const CONVERSATION_OF_MESSAGE = columnIndex("conversation_messages", "conversation_id");
const NUMBER_OF_MESSAGE = columnIndex("conversation_messages", "number");
const TEXT = {
  agent_steps: columnIndex("agent_steps", "text"),
  conversation_messages: columnIndex("conversation_messages", "text"),
};

export const inArchive = ({ session_id, first, last }: Stretch): Condition => all(...keyRange(session_id, first, last));
const keyRange = (id: string, from: number, to: number): Condition[] => [
  compare("sort_key", ">=", sortKey(id, from)),
  compare("sort_key", "<=", sortKey(id, Math.min(to, LAST_NUMBER))),
];

/** The same formula as the index's (BM25 with equal weights), so that results of both sides rank together. */
function scoreOf(text: string[], queryWords: string[]): number {
  let score = 0;
  for (const word of queryWords) {
    const count = text.filter((candidate) => candidate === word).length;
    if (count === 0) return 0;
    score += (2 * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * text.length) / 20));
  }
  return score;
}

/** A sort order for SQLite, for LanceDB, and for merging their results. */
export type RowOrder = { sql: string; lance: Order; compare: (a: Values, b: Values) => number };

function orderBy(table: HistoryName, ...keys: [column: string, direction: 1 | -1][]): RowOrder {
  const indexed = keys.map(([column, direction]) => ({ index: columnIndex(table, column), direction }));
  return {
    sql: keys.map(([column, direction]) => `${column}${direction < 0 ? " DESC" : ""}`).join(", "),
    lance: keys.map(([columnName, direction]) => ({ columnName, ascending: direction > 0 })),
    compare(a, b) {
      for (const { index, direction } of indexed) {
        const [left, right] = [a[index] as NonNullable<Value>, b[index] as NonNullable<Value>];
        if (left !== right) return left < right ? -direction : direction;
      }
      return 0;
    },
  };
}

const BY_ITERATION = orderBy("agent_steps", ["iteration", 1], ["id", 1]);
const BY_NUMBER = orderBy("conversation_messages", ["number", 1]);
const NEWEST_ACTION = orderBy("queue", ["action_id", -1]);
