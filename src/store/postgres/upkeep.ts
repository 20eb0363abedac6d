import type { Pruned } from "../store.ts";
import type { Pool } from "./connections.ts";
import { gramsOf, TEXT_COLUMNS, textOf } from "./session-lists.ts";
import { fromArrays, toArrays } from "./single-row-statements.ts";
import { arrayOf, type InputColumn, type Scalar } from "./tables.ts";

export type UpkeepTuning = {
  /** How often what lists go by is brought up to date, in milliseconds. 5,000 by default. */
  upkeep_ms: number;
};
export const UPKEEP_TUNING: UpkeepTuning = { upkeep_ms: 5000 };

/** Milliseconds for which a process that began keeps the others from it, should it die meanwhile. */
const TURN_MS = 30_000;
const MOST_CHANGES = 10_000;
const MOST_TEXTS = 500;

/**
 * Keeps small what reads of lists go through beside the indexes: changes of counts are added up, texts that changed are indexed.
 * Reads are exact without it, only slower, so nothing waits for it and it may fail.
 *
 * UPKEEP-1  One process at a time does it. Another may begin when the first one is late: each statement is right by itself.
 * UPKEEP-2  A text is indexed only as the revision that it was read from, with the session's row locked; otherwise it stays stale.
 *     Rows that others have locked are left for later, so that no commit can wait for this one in a circle.
 */
export class ListUpkeep {
  readonly #pool: Pool;
  readonly #every_ms: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(pool: Pool, { upkeep_ms }: UpkeepTuning) {
    this.#pool = pool;
    this.#every_ms = upkeep_ms;
  }

  start(): void {
    if (this.#stopped) return;
    // Not all processes at once.
    const wait = this.#every_ms * (0.75 + Math.random() / 2);
    this.#timer = setTimeout(() => {
      this.#running = this.run()
        .catch(() => {}) // The next time comes, and reads do without.
        .then(() => this.start());
    }, wait).unref();
  }

  /** Waits for the statement that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** All that there is to do now, unless another process does it. */
  async run(): Promise<void> {
    if (!(await this.#takeTurn())) return; // UPKEEP-1
    await this.#addUpCounts();
    await this.#indexTexts();
    await this.#pool.query("update upkeep set until = now() where name = 'lists'");
  }

  async #takeTurn(): Promise<boolean> {
    const rows = await this.#pool.query(
      `update upkeep set until = now() + ${TURN_MS} * interval '1 millisecond' where name = 'lists' and until < now()
         and (exists (select 1 from session_count_changes) or exists (select 1 from session_search_stale)) returning 1`,
    );
    return rows.length > 0;
  }

  async #addUpCounts(): Promise<void> {
    for (let count = MOST_CHANGES; count === MOST_CHANGES && !this.#stopped; ) {
      const [row] = await this.#pool.query(ADD_UP, MOST_CHANGES);
      count = Number(row?.["count"]);
    }
    await this.#pool.query("delete from session_counts where count = 0");
  }

  async #indexTexts(): Promise<void> {
    for (let last = ""; !this.#stopped; ) {
      const rows = await this.#pool.query(
        `select ${TEXT_COLUMNS} from session_search_stale d join agent_state s on s.session_id = d.session_id
         where d.session_id > $1 order by d.session_id limit ${MOST_TEXTS}`,
        last,
      );
      const texts = rows.map((row): Scalar[] => {
        const text = textOf(row);
        return [...KEYS.map((name) => row[name] as Scalar), text, arrayOf(gramsOf(text))];
      });
      if (texts.length > 0) await this.#pool.query(INDEX, ...toArrays(COLUMNS, texts));
      if (rows.length < MOST_TEXTS) return;
      last = rows.at(-1)?.["session_id"] as string;
      await this.#pool.query(
        `update upkeep set until = now() + ${TURN_MS} * interval '1 millisecond' where name = 'lists'`,
      );
    }
  }
}

/** What two processes take at once is not the same, and they write in one order. */
const ADD_UP = `
with taken as (
  delete from session_count_changes where number in (
    select number from session_count_changes order by number limit $1 for update skip locked)
  returning agent_id, moniker, status, needs_person, change),
sums as (
  select k.agent_key, k.moniker_key, t.status, t.needs_person, sum(t.change)::bigint as count
  from taken t cross join lateral (values ('=' || t.agent_id, '=' || t.moniker), ('', '=' || t.moniker), ('', '')) k (agent_key, moniker_key)
  group by k.agent_key, k.moniker_key, t.status, t.needs_person having sum(t.change) <> 0),
added as (
  insert into session_counts as c (agent_key, moniker_key, status, needs_person, count)
    select * from sums order by agent_key, moniker_key, status, needs_person
  on conflict (agent_key, moniker_key, status, needs_person) do update set count = c.count + excluded.count)
select count(*) as count from taken`;

const KEYS = ["session_id", "number", "revision"];
const COLUMNS: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "number", sql_type: "bigint" },
  { name: "revision", sql_type: "bigint" },
  { name: "text", sql_type: "text" },
  { name: "grams", sql_type: "text" },
];

/** UPKEEP-2. Written so that rows are found by their keys, whatever the planner thinks of tables that have just grown. */
const INDEX = `
with i as materialized (${fromArrays(COLUMNS, 1)}),
mine as materialized (
  select i.* from i cross join lateral (select 1 from agent_state s where s.session_id = i.session_id and s.revision = i.revision
    for update skip locked) locked),
fresh as (update agent_state set search_is_stale = false where session_id = any (array(select session_id from mine))),
written as (
  insert into session_search as x (number, session_id, text, grams)
    select number, session_id, text, grams::integer[] from mine
  on conflict (number) do update set text = excluded.text, grams = excluded.grams where x.text <> excluded.text)
delete from session_search_stale where session_id = any (array(select session_id from mine))`;

/** Rows that one statement deletes at most, so that none holds its locks for long. */
const AT_ONCE = 500;

export async function prune(pool: Pool, before: string): Promise<Pruned> {
  return { sessions: await repeat(pool, SESSIONS, before), conversations: await repeat(pool, CONVERSATIONS, before) };
}

async function repeat(pool: Pool, statement: string, before: string): Promise<number> {
  for (let total = 0; ; ) {
    const [row] = await pool.query(statement, before, AT_ONCE);
    const deleted = Number(row?.["count"] ?? 0);
    total += deleted;
    if (deleted === 0) return total;
  }
}

/** Forks go before what they were taken from. Actions that were never claimed keep their session. */
const SESSIONS = `
with old as materialized (
  select s.session_id from agent_state s
  where s.status in ('done', 'stopped') and s.ended_at < $1::timestamptz and s.node_no is null
    and not exists (select 1 from agent_state c where c.parent_session_id = s.session_id)
    and not exists (select 1 from queue q where q.session_id = s.session_id and not q.processed)
  order by s.session_id limit $2 for update skip locked),
steps as (delete from agent_steps t using old o where t.session_id = o.session_id),
actions as (delete from queue q using old o where q.session_id = o.session_id),
cursors as (delete from session_cursors c using old o where c.session_id = o.session_id),
sessions as (delete from agent_state s using old o where s.session_id = o.session_id returning 1)
select count(*)::integer as count from sessions`;

const CONVERSATIONS = `
with old as materialized (
  select c.conversation_id from conversations c
  where c.status = 'archived' and c.created_at < $1::timestamptz
    and not exists (select 1 from conversation_messages m where m.conversation_id = c.conversation_id and m.created_at >= $1::timestamptz)
    and not exists (select 1 from agent_state s where s.conversation_id = c.conversation_id)
  order by c.conversation_id limit $2 for update skip locked),
messages as (delete from conversation_messages m using old o where m.conversation_id = o.conversation_id),
numbers as (delete from conversation_numbers n using old o where n.conversation_id = o.conversation_id),
participants as (delete from conversation_participants p using old o where p.conversation_id = o.conversation_id),
conversations as (delete from conversations c using old o where c.conversation_id = o.conversation_id returning 1)
select count(*)::integer as count from conversations`;
