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
import type { Pool, Row } from "./connections.ts";
import { fromArrays, OK_ROW_ORDER, toArrays } from "./single-row-statements.ts";
import { arrayOf, fromText, type InputColumn, type Scalar, type Tables, toIndexedWords, toText } from "./tables.ts";

/** The pool does not wait for the disk; what files are removed for must. */
const DURABLE = "set_config('synchronous_commit', 'on', true)";
/** Rows that one statement reads. */
const PAGE = 4000;
const ENDED = "s.status in ('done', 'stopped', 'error') and s.node_no is null";

/** Volumes of the shared store. Moves are functions of the database (`migrations.sql`), each one transaction. */
export class PostgresVolumes implements VolumeStore {
  readonly history = new ArchivedHistory(this);
  readonly #pool: Pick<Pool, "query">;
  readonly #tables: Tables;

  constructor(pool: Pick<Pool, "query">, tables: Tables) {
    this.#pool = pool;
    this.#tables = tables;
  }

  attach(reader: VolumeReader): void {
    this.history.attach(reader);
  }

  async list(): Promise<Volume[]> {
    const rows = await this.#pool.query(
      `select ${this.#tables.selected("volumes", "r")} from volumes r order by r.volume_id`,
    );
    return rows.map((row) => this.#tables.toRow("volumes", row));
  }

  async ranges(of: RangesOf): Promise<ArchivedRange[]> {
    const [where, value] =
      "volume_id" in of
        ? ["r.volume_id = $1", toText(of.volume_id)]
        : "agent_id" in of
          ? ["r.agent_id = $1", toText(of.agent_id)]
          : ["r.owner_id = any ($1::text[])", arrayOf(of.owner_ids.map(toText))];
    const rows = await this.#pool.query(
      `select ${this.#tables.selected("archived_ranges", "r")} from archived_ranges r where ${where} order by r.range_id`,
      value,
    );
    return rows.map((row) => this.#tables.toRow("archived_ranges", row));
  }

  async countArchived({ agent_id, session_id }: { agent_id?: string; session_id?: string }): Promise<number> {
    const [row] = await this.#pool.query(
      `select count(distinct owner_id)::integer as count from archived_ranges
       where kind = 'steps' and state = 'archived' and ($1::text is null or agent_id = $1) and ($2::text is null or owner_id = $2)`,
      agent_id === undefined ? null : toText(agent_id),
      session_id === undefined ? null : toText(session_id),
    );
    return Number(row?.["count"] ?? 0);
  }

  async *endedSessions(before: string): AsyncGenerator<EndedSession> {
    for (let after: EndedSession | null = null; ; ) {
      const sessions: EndedSession[] = await this.#endedSessions(before, after);
      yield* sessions;
      if (sessions.length < PAGE) return;
      after = sessions.at(-1) ?? null;
    }
  }

  async #endedSessions(before: string, after: EndedSession | null): Promise<EndedSession[]> {
    const rows = await this.#pool.query(
      `select s.session_id, s.agent_id, s.iteration, s.error_rows, s.ended_at, a.first,
         a.error_rows as archived_error_rows
       from agent_state s cross join lateral (
         select coalesce(max(r.last), s.parent_iteration, -1) + 1 as first, coalesce(max(r.error_rows), 0) as error_rows
         from archived_ranges r where r.owner_id = s.session_id and r.kind = 'steps') a
       where s.ended_at < $1::timestamptz and ${ENDED} and (s.iteration >= a.first or s.error_rows > a.error_rows)
         and ($2::timestamptz is null or (s.ended_at, s.session_id) > ($2::timestamptz, $3))
       order by s.ended_at, s.session_id limit ${PAGE}`,
      before,
      after?.ended_at ?? null,
      toText(after?.session_id ?? ""),
    );
    return rows.map((row) => decoded(row, ["session_id", "agent_id"]) as EndedSession);
  }

  async *quietConversations(before: string): AsyncGenerator<QuietConversation> {
    for (let after = ""; ; ) {
      const conversations = await this.#quietConversations(before, after);
      yield* conversations;
      if (conversations.length < PAGE) return;
      after = conversations.at(-1)?.conversation_id ?? "";
    }
  }

  async #quietConversations(before: string, after: string): Promise<QuietConversation[]> {
    const rows = await this.#pool.query(
      `with quiet as materialized (
         select s.conversation_id from agent_state s where s.conversation_id > $2
         group by s.conversation_id having bool_and(${ENDED} and s.ended_at < $1::timestamptz))
       select q.conversation_id, min(m.number) as first, max(m.number) as last
       from quiet q join conversation_messages m on m.conversation_id = q.conversation_id
       group by q.conversation_id having max(m.created_at) < $1::timestamptz order by q.conversation_id limit ${PAGE}`,
      before,
      toText(after),
    );
    return rows.map((row) => decoded(row, ["conversation_id"]) as QuietConversation);
  }

  async *readSteps(sessions: readonly EndedSession[]): AsyncGenerator<StoredStepRow> {
    for (const some of grouped(sessions, rowsOf)) {
      const [only] = some.length === 1 ? some : [];
      if (only && rowsOf(only) > PAGE) yield* this.#stepsOfLarge(only);
      else yield* (await this.#steps(some, -1, -1)).map((row) => this.#toStep(row));
    }
  }

  async *#stepsOfLarge(session: EndedSession): AsyncGenerator<StoredStepRow> {
    for (let [iteration, place] = [-1, -1]; ; ) {
      const rows = await this.#steps([session], iteration, place);
      yield* rows.map((row) => this.#toStep(row));
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) return;
      [iteration, place] = [Number(last["iteration"]), Number(last["place"])];
    }
  }

  #steps(sessions: readonly EndedSession[], iteration: number, place: number): Promise<Row[]> {
    return this.#pool.query(
      `select ${this.#tables.selected("agent_steps", "t")}, t.place
       from unnest($1::text[]) with ordinality as w (session_id, at) join agent_steps t on t.session_id = w.session_id
       where (t.iteration, t.place) > ($2::integer, $3::integer) order by w.at, t.iteration, t.place limit ${PAGE}`,
      arrayOf(sessions.map(({ session_id }) => toText(session_id))),
      iteration,
      place,
    );
  }

  #toStep(row: Row): StoredStepRow {
    const { state, state_kind, base_iteration } = row as StoredStepRow;
    return { ...this.#tables.toRow("agent_steps", row), state, state_kind, base_iteration, pos: 0 };
  }

  async *readMessages(conversations: readonly QuietConversation[]): AsyncGenerator<StoredMessageRow> {
    for (const { conversation_id, first, last } of conversations)
      for (let next = first; next <= last; next += PAGE) {
        const rows = await this.#pool.query(
          `select ${this.#tables.selected("conversation_messages", "m")} from conversation_messages m
           where m.conversation_id = $1 and m.number between $2 and $3 order by m.number`,
          toText(conversation_id),
          next,
          Math.min(last, next + PAGE - 1),
        );
        for (const row of rows)
          yield { ...this.#tables.toRow("conversation_messages", row), number: Number(row["number"]), pos: 0 };
      }
  }

  async announce(volume: Volume): Promise<void> {
    const { text, parameters } = this.#insert("volumes", [volume], 1);
    await this.#pool.query(`${text} on conflict (volume_id) do nothing returning ${DURABLE}`, ...parameters);
  }

  async record(volume: Volume, ranges: readonly ArchivedRange[]): Promise<boolean> {
    const columns = this.#tables.input("volumes");
    const changed = columns.map(({ name }) => `${name} = i.${name}`).join(", ");
    const values = toArrays(columns, [this.#tables.toValues("volumes", volume)]);
    const inserted = this.#insert("archived_ranges", ranges, columns.length + 1);
    const rows = await this.#pool.query(
      `with i as materialized (${fromArrays(columns, 1)}),
       recorded as (update volumes v set ${changed} from i where v.volume_id = i.volume_id and v.state = 'writing' returning 1),
       added as (${inserted.text} where exists (select 1 from recorded) returning 1)
       select count(*)::integer as count, ${DURABLE} from recorded`,
      ...values,
      ...inserted.parameters,
    );
    if (Number(rows[0]?.["count"]) > 0) return true;
    // The answer to a statement that went through may have been lost.
    return (await this.ranges({ volume_id: volume.volume_id })).length > 0;
  }

  async move(ranges: readonly ArchivedRange[]): Promise<number> {
    const name = ranges[0]?.kind === "messages" ? "move_archived_messages" : "move_archived_steps";
    const ids = arrayOf(ranges.map(({ range_id }) => toText(range_id)));
    await this.#pool.query(`select ${name}($1::text[]), ${DURABLE}`, ids);
    // Counted apart: a statement whose answer was lost is repeated and finds nothing to do.
    const [row] = await this.#pool.query(
      "select count(*)::integer as count from archived_ranges where range_id = any ($1::text[]) and state = 'archived'",
      ids,
    );
    return Number(row?.["count"] ?? 0);
  }

  async finish(volume_id: string): Promise<void> {
    await this.#pool.query(
      `update volumes set state = 'archived' where volume_id = $1 and state = 'moving'
         and not exists (select 1 from archived_ranges where volume_id = $1 and state = 'copied') returning ${DURABLE}`,
      toText(volume_id),
    );
  }

  async restore(
    range: ArchivedRange,
    rows: { steps: StoredStepRow[] } | { messages: StoredMessageRow[] },
  ): Promise<void> {
    const { text, parameters } =
      "steps" in rows ? this.#insertSteps(range, rows.steps) : this.#insertMessages(rows.messages);
    await this.#pool.query(
      `with gone as (delete from archived_ranges where range_id = $1 and state = 'archived' returning owner_id),
       keys as (delete from archived_messages m using gone where m.conversation_id = gone.owner_id
         and m.number between ${range.first} and ${range.last}),
       added as (${text} where exists (select 1 from gone))
       select count(*), ${DURABLE} from gone`,
      toText(range.range_id),
      ...parameters,
    );
  }

  #insertSteps({ error_rows }: ArchivedRange, steps: StoredStepRow[]): InsertText {
    const failed = steps.filter(({ status }) => status === "error").length;
    let number = error_rows - failed;
    const rows = steps.map((step) => [
      step.status === "error" ? number++ : OK_ROW_ORDER,
      toIndexedWords(step.text),
      ...this.#tables.toValues("agent_steps", step),
    ]);
    const columns = [{ name: "place", sql_type: "integer" }, WORDS, ...this.#tables.input("agent_steps")];
    return insertText("agent_steps", columns, rows, 2);
  }

  #insertMessages(messages: StoredMessageRow[]): InsertText {
    const rows = messages.map((message) => [
      message.number,
      toIndexedWords(message.text),
      ...this.#tables.toValues("conversation_messages", message),
    ]);
    const columns = [{ name: "number", sql_type: "integer" }, WORDS, ...this.#tables.input("conversation_messages")];
    return insertText("conversation_messages", columns, rows, 2);
  }

  async droppable(before: string): Promise<Volume[]> {
    const rows = await this.#pool.query(
      `with recursive young as (
         select s.parent_session_id as session_id from agent_state s
         where s.parent_session_id is not null and not coalesce(${ENDED} and s.ended_at < $1::timestamptz, false)
         union select s.parent_session_id from young y join agent_state s on s.session_id = y.session_id
         where s.parent_session_id is not null)
       select ${this.#tables.selected("volumes", "v")} from volumes v where v.state = 'archived' and not exists (
         select 1 from archived_ranges r join agent_state s on r.kind = 'steps' and s.session_id = r.owner_id
         where r.volume_id = v.volume_id and (not coalesce(${ENDED} and s.ended_at < $1::timestamptz, false)
           or s.session_id in (select session_id from young)))
       and not exists (
         select 1 from archived_ranges r join agent_state s on r.kind = 'messages' and s.conversation_id = r.owner_id
         where r.volume_id = v.volume_id and not coalesce(${ENDED} and s.ended_at < $1::timestamptz, false))
       order by v.volume_id`,
      before,
    );
    return rows.map((row) => this.#tables.toRow("volumes", row));
  }

  async drop(volume_id: string): Promise<void> {
    await this.#pool.query(
      `with dropped as (update volumes set state = 'dropped' where volume_id = $1 and state = 'archived' returning volume_id)
       update archived_ranges r set state = 'dropped' from dropped d where r.volume_id = d.volume_id returning ${DURABLE}`,
      toText(volume_id),
    );
  }

  async forget(volume_id: string): Promise<void> {
    await this.#pool.query(
      `delete from volumes v where v.volume_id = $1 and (v.state = 'writing'
         or not exists (select 1 from archived_ranges r where r.volume_id = v.volume_id)) returning ${DURABLE}`,
      toText(volume_id),
    );
  }

  /** Where a message that left the tables stood. */
  async messagePlace(message_id: string): Promise<MessagePlace | null> {
    const [row] = await this.#pool.query(
      "select conversation_id, number from archived_messages where message_id = $1",
      toText(message_id),
    );
    return row ? (decoded(row, ["conversation_id"]) as MessagePlace) : null;
  }

  #insert(table: "volumes" | "archived_ranges", rows: readonly (Volume | ArchivedRange)[], first: number): InsertText {
    const values = rows.map((row) => this.#tables.toValues(table, row as never));
    return insertText(table, this.#tables.input(table), values, first);
  }
}

type MessagePlace = { conversation_id: string; number: number };
type InsertText = { text: string; parameters: string[] };
const WORDS: InputColumn = { name: "words", sql_type: "tsvector" };

function insertText(table: string, columns: readonly InputColumn[], rows: Scalar[][], first: number): InsertText {
  const names = columns.map(({ name }) => name).join(", ");
  return { text: `insert into ${table} (${names}) ${fromArrays(columns, first)}`, parameters: toArrays(columns, rows) };
}

const rowsOf = ({ first, iteration, error_rows, archived_error_rows }: EndedSession): number =>
  iteration - first + 1 + error_rows - archived_error_rows;

/** As many as one page holds; one that is larger stands alone. */
function* grouped<Item>(items: readonly Item[], sizeOf: (item: Item) => number): Generator<Item[]> {
  let group: Item[] = [];
  let size = 0;
  for (const item of items) {
    if (group.length > 0 && size + sizeOf(item) > PAGE) {
      yield group;
      [group, size] = [[], 0];
    }
    group.push(item);
    size += sizeOf(item);
  }
  if (group.length > 0) yield group;
}

function decoded(row: Row, names: readonly string[]): Row {
  const texts = names.map((name) => [name, fromText(row[name] as string)]);
  return { ...row, ...Object.fromEntries(texts) };
}
