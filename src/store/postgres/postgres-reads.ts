import type { Action } from "../../domain/action.ts";
import type { Agent, AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import type { SessionCosts } from "../../domain/cost.ts";
import type { GuidanceAmount } from "../../domain/guidance-amount.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { Session } from "../../domain/session.ts";
import { sessionSummarySchema, summaryOf } from "../../domain/session-summary.ts";
import type { Step } from "../../domain/step.ts";
import type { ArchivedRange } from "../../domain/volume.ts";
import { folded } from "../../domain/words.ts";
import {
  type Ancestor,
  decodeSteps,
  isSame,
  iterationsOf,
  lineageOf,
  type PageParts,
  pageParts,
  type StepWithBases,
  type StoredStep,
  type Stretch,
} from "../history-pages.ts";
import type { Position } from "../owned-sessions.ts";
import type { PortRows, TableName } from "../schema.ts";
import { type Chain, readState } from "../state-delta.ts";
import type * as port from "../store.ts";
import type { Parameter, Pool, Row } from "./connections.ts";
import { PostgresVolumes } from "./postgres-volumes.ts";
import {
  type FoundSessions,
  isOfFew,
  type ListFilter,
  conditions as listConditions,
  RESULT_BEGINNING,
  SessionLists,
  SessionSearch,
  toCounts,
  totalOf,
  toWhere,
  Values,
} from "./session-lists.ts";
import { OK_ROW_ORDER } from "./single-row-statements.ts";
import { arrayOf, fromText, GUIDANCE, type Tables, toText, toWordQuery } from "./tables.ts";

/** A session as it is stored, with its state rebuilt. */
export type LoadedSession = {
  session: Session;
  chain: Chain | null;
  error_rows: number;
  epoch: number;
  revision: number;
  after_crash: boolean;
};
/** Limit when sessions since a time are counted. */
const MOST_COUNTED_SINCE = 10_000;

type StepRow = Row & StoredStep["stored"] & { iteration: number };
type NumberedMessage = { message: Message; number: number };

const LAST_ITERATION = 2_147_483_647;
const SUMMARY_COLUMNS = [
  ...Object.keys(sessionSummarySchema.shape)
    .filter((name) => name !== "text")
    .map((name) => `s.${name}`),
  RESULT_BEGINNING,
].join(", ");

/**
 * The port's reads, and those that the store itself needs. A live session's state is not in its row; it is rebuilt from the
 * session's last steps.
 */
export class PostgresReads {
  readonly volumes: PostgresVolumes;
  readonly #pool: Pick<Pool, "query">;
  readonly #tables: Tables;
  readonly #lists: SessionLists;
  readonly #search: SessionSearch;
  /** The columns that `loadSessions` needs. */
  readonly sessionColumns: string;
  readonly #stepColumns: string;
  /** Every creation looks for one. */
  readonly #agentConfigs = new BatchedLookup(async (agent_ids) => {
    const configs = await this.#rows("agent_config", "where r.agent_id = any ($1::text[])", textArray(agent_ids));
    return new Map(configs.map((config) => [config.agent_id, config]));
  });
  /** Every request to a session of another process looks for one. */
  readonly #sessionAgents = new BatchedLookup(async (session_ids) => {
    const rows = await this.#pool.query(
      "select session_id, agent_id from agent_state where session_id = any ($1::text[])",
      textArray(session_ids),
    );
    return new Map(
      rows.map(({ session_id, agent_id }) => [fromText(String(session_id)), fromText(String(agent_id))] as const),
    );
  });

  constructor(pool: Pick<Pool, "query">, tables: Tables) {
    this.#pool = pool;
    this.#lists = new SessionLists(pool);
    this.#search = new SessionSearch(pool, this.#lists);
    this.#tables = tables;
    this.volumes = new PostgresVolumes(pool, tables);
    this.sessionColumns = `${tables.selected("agent_state", "s")}, s.epoch, s.revision, s.owner_died`;
    this.#stepColumns = tables.selected("agent_steps", "t");
  }

  async getSession(session_id: string): Promise<Session | null> {
    return (await this.#sessions("where s.session_id = $1", toText(session_id)))[0] ?? null;
  }

  async getSessionAgent(session_id: string): Promise<string | null> {
    return this.#sessionAgents.get(session_id);
  }

  async listSessions({ status, ...filter }: port.SessionFilter): Promise<Session[]> {
    const ids = await this.#lists.page(status === undefined ? filter : { ...filter, statuses: [status] });
    return inOrder(ids, await this.#sessionsById(ids.map(toText)));
  }

  /** Does not read the sessions' states. See `SessionLists` and `SessionSearch` for how it stays fast. */
  async summarizeSessions({ q, ...filter }: port.SummaryFilter): Promise<port.SessionSummaries> {
    const { session_ids, ...totals } = await this.#findSessions(filter, folded(q ?? ""));
    const rows = await this.#pool.query(
      `select ${SUMMARY_COLUMNS} from agent_state s where s.session_id = any ($1::text[])`,
      textArray(session_ids),
    );
    const summaries = rows.map((row) => summaryOf(this.#tables.toRow("agent_state", row)));
    return { sessions: inOrder(session_ids, summaries), ...totals };
  }

  async getAgent(agent_id: string): Promise<Agent | null> {
    return (await this.#agents(agent_id, { limit: 1, offset: 0 }))[0] ?? null;
  }

  listAgents(page: port.Page): Promise<Agent[]> {
    return this.#agents(null, page);
  }

  getAgentConfig(agent_id: string): Promise<AgentConfig | null> {
    return this.#agentConfigs.get(agent_id);
  }

  listAgentConfigs({ limit, offset }: port.Page): Promise<AgentConfig[]> {
    return this.#rows("agent_config", "order by r.agent_id limit $1 offset $2", limit, offset);
  }

  async getAction(action_id: string): Promise<Action | null> {
    return (await this.#rows("queue", "where r.action_id = $1", toText(action_id)))[0] ?? null;
  }

  getActions(action_ids: string[]): Promise<Action[]> {
    return this.#rows("queue", "where r.action_id = any ($1::text[])", textArray(action_ids));
  }

  listActions({ session_id, agent_id, processed, limit, offset }: port.ActionFilter): Promise<Action[]> {
    const { where, values } = conditions([
      ["r.session_id =", optionalText(session_id)],
      ["r.agent_id =", optionalText(agent_id)],
      ["r.processed =", processed],
    ]);
    const page = `${where} order by r.created_at desc, r.action_id desc limit $1 offset $2`;
    return this.#rows("queue", page, limit, offset, ...values);
  }

  async unusedGuidance(session_id: string): Promise<GuidanceAmount> {
    // Counted by their actions: guidance that `jsonb` cannot hold is not stored as a list.
    const [row] = await this.#pool.query(
      `select q.count + coalesce(jsonb_array_length(s.pending_action_ids), 0) as count,
         (q.bytes + coalesce(octet_length(s.pending_guidance::text), 0))::double precision as bytes
       from (select count(*)::integer as count, coalesce(sum(octet_length(payload::text)), 0) as bytes from queue
         where session_id = $1 and not processed and action_type in (${GUIDANCE})) q
       left join agent_state s on s.session_id = $1`,
      toText(session_id),
    );
    return row as GuidanceAmount;
  }

  async listSteps(filter: port.StepFilter): Promise<Step[]> {
    const { from, to } = iterationsOf(filter);
    if (from > to || from > LAST_ITERATION) return [];
    if (!("agent_id" in filter)) return this.#stepsOfSession(filter);
    for (;;) {
      const rows = await this.#stepsOfAgent(filter);
      if (rows[0]?.["is_archived"] === false) return this.#decode(rows);
      const ranges = await this.volumes.ranges(filter);
      if (ranges.length === 0) return this.#decode(rows);
      const first = { ...filter, limit: filter.offset + filter.limit, offset: 0 };
      const hot = await this.#decode(await this.#stepsOfAgent(first));
      const steps = await this.volumes.history.stepsOfAgent(filter, ranges, hot);
      if (isSame(ranges, await this.volumes.ranges(filter))) return steps;
    }
  }

  async #stepsOfAgent(filter: port.StepFilter & { agent_id: string }): Promise<StepRow[]> {
    const { from, to } = iterationsOf(filter);
    const rows = await this.#pool.query(
      `select ${this.#stepColumns}, exists (select 1 from archived_ranges where agent_id = $1) as is_archived from agent_steps t
       where t.agent_id = $1 and t.iteration between $2 and $3 ${stepConditions(filter, 6)}
       order by t.iteration, t.id limit $4 offset $5`,
      toText(filter.agent_id),
      from,
      Math.min(to, LAST_ITERATION),
      filter.limit,
      filter.offset,
      ...stepValues(filter),
    );
    return rows as StepRow[];
  }

  /** The newest step; for a fork without one of its own, the parent's step that it was forked at. */
  async latestStep(of: port.SessionOrAgent): Promise<Step | null> {
    const session_id = "session_id" in of ? of.session_id : await this.#lastMoved(of.agent_id);
    if (session_id === null) return null;
    for (const stretch of (await this.#lineage(session_id)).stretches) {
      const rows = await this.#pool.query(
        `select ${this.#stepColumns} from agent_steps t where t.session_id = $1 and t.iteration between $2 and $3
         order by t.iteration desc, t.place desc limit 1`,
        stretch.session_id,
        stretch.first,
        Math.min(stretch.last, LAST_ITERATION),
      );
      if (rows.length > 0) return (await this.#decode(rows as StepRow[]))[0] ?? null;
      // A volume has what came before the tables' rows.
      const ranges = await this.volumes.ranges({ owner_ids: [fromText(stretch.session_id)] });
      const archived = await this.volumes.history.latestStep(ranges, stretch.last);
      if (archived) return archived;
    }
    return null;
  }

  /** Up to `limit` steps after a position, in the order of their commits. */
  async stepsAfter(session_id: string, { iteration, error_rows }: Position, limit: number): Promise<Step[]> {
    const rows = await this.#pool.query(
      `select ${this.#stepColumns} from agent_steps t where t.session_id = $1 and t.iteration > $2 and t.place >= $3
       order by t.iteration, t.place limit $4`,
      toText(session_id),
      iteration,
      error_rows,
      limit,
    );
    return this.#decode(rows as StepRow[]);
  }

  async getConversation(conversation_id: string): Promise<Conversation | null> {
    return (await this.#rows("conversations", "where r.conversation_id = $1", toText(conversation_id)))[0] ?? null;
  }

  listConversations({ status, tag, limit, offset }: port.ConversationFilter): Promise<Conversation[]> {
    const { where, values } = conditions([
      ["r.status =", status],
      ["r.tags ?", optionalText(tag)],
    ]);
    return this.#rows("conversations", `${where} order by r.number desc limit $1 offset $2`, limit, offset, ...values);
  }

  async getParticipant(participant_id: string): Promise<Participant | null> {
    const where = "where r.participant_id = $1";
    return (await this.#rows("conversation_participants", where, toText(participant_id)))[0] ?? null;
  }

  listParticipants(conversation_id: string): Promise<Participant[]> {
    const where = "where r.conversation_id = $1 order by r.number";
    return this.#rows("conversation_participants", where, toText(conversation_id));
  }

  async getMessage(message_id: string): Promise<Message | null> {
    const [row] = await this.#rows("conversation_messages", "where r.message_id = $1", toText(message_id));
    if (row) return row;
    const place = await this.volumes.messagePlace(message_id);
    if (!place) return null;
    const ranges = await this.volumes.ranges({ owner_ids: [place.conversation_id] });
    return this.volumes.history.message(ranges, place.number);
  }

  async listMessages(filter: port.MessageFilter): Promise<Message[]> {
    const { conversation_id, after, limit } = filter;
    const from = after === undefined || after === "" ? 1 : await this.#numberAfter(conversation_id, after);
    if (from === null) return [];
    const decoded = (rows: Row[]): Message[] => rows.map((row) => this.#tables.toRow("conversation_messages", row));
    const hot = (ask: port.MessageFilter & { first: number }): Promise<Row[]> =>
      ask.limit > 0 ? this.#messages(ask) : Promise.resolve([]);
    for (;;) {
      const rows = await hot({ ...filter, first: from });
      if (rows[0]?.["is_archived"] === false || limit <= 0) return decoded(rows);
      const owner = { owner_ids: [conversation_id] };
      const ranges = await this.volumes.ranges(owner);
      if (ranges.length === 0) return decoded(rows);
      const messages = await this.volumes.history.messages(filter, from, ranges, async (ask) =>
        decoded(await hot(ask)),
      );
      if (isSame(ranges, await this.volumes.ranges(owner))) return messages;
    }
  }

  /** What the table has from a number on. */
  #messages({ conversation_id, since, first, limit, offset }: port.MessageFilter & { first: number }): Promise<Row[]> {
    return this.#pool.query(
      `select ${this.#tables.selected("conversation_messages", "r")},
         exists (select 1 from archived_ranges where owner_id = $1) as is_archived
       from conversation_messages r
       where r.conversation_id = $1 and r.number >= $2 ${since === undefined ? "" : "and r.created_at >= $5::timestamptz"}
       order by r.number limit $3 offset $4`,
      toText(conversation_id),
      // Numbers have no gaps, so an offset into them is a range.
      since === undefined ? first + offset : first,
      limit,
      since === undefined ? 0 : offset,
      ...(since === undefined ? [] : [since]),
    );
  }

  /** The messages from a number on, with their numbers. */
  async messagesFrom(conversation_id: string, number: number, limit: number): Promise<NumberedMessage[]> {
    const rows = await this.#pool.query(
      `select ${this.#tables.selected("conversation_messages", "m")} from conversation_messages m
       where m.conversation_id = $1 and m.number >= $2 order by m.number limit $3`,
      toText(conversation_id),
      number,
      limit,
    );
    return rows.map((row) => ({
      message: this.#tables.toRow("conversation_messages", row),
      number: Number(row["number"]),
    }));
  }

  /** A message's place in its conversation. */
  async messageNumber(message_id: string): Promise<number | null> {
    const [row] = await this.#pool.query(
      `select number from conversation_messages where message_id = $1
       union all select number from archived_messages where message_id = $1`,
      toText(message_id),
    );
    return row ? Number(row["number"]) : null;
  }

  /** The number of the last message of each conversation that has one. */
  async lastMessageNumbers(conversation_ids: string[]): Promise<Map<string, number>> {
    const rows = await this.#pool.query(
      "select conversation_id, last_number from conversation_numbers where conversation_id = any ($1::text[])",
      textArray(conversation_ids),
    );
    return new Map(rows.map((row) => [fromText(row["conversation_id"] as string), Number(row["last_number"])]));
  }

  async getCursor({ session_id, conversation_id }: CursorKey): Promise<SessionCursor | null> {
    const where = "where r.session_id = $1 and r.conversation_id = $2";
    return (await this.#rows("session_cursors", where, toText(session_id), toText(conversation_id)))[0] ?? null;
  }

  async search({ q, agent_id, session_id, limit }: port.SearchQuery): Promise<SearchHit[]> {
    const wordQuery = toWordQuery(q);
    if (wordQuery === null) return [];
    const { where, values } = conditions([
      ["agent_id =", optionalText(agent_id)],
      ["session_id =", optionalText(session_id)],
    ]);
    const only = where.replace("where", "and");
    // Longer texts count less for the same words.
    const score = "ts_rank(words, $1::text::tsquery, 2) as score";
    const rows = await this.#pool.query(
      `(select 'step' as kind, ${score}, text, session_id, iteration, null as conversation_id, null as message_id
         from agent_steps where words @@ $1::text::tsquery ${only} order by score desc limit $2)
       union all
       (select 'message', ${score}, text, session_id, null, conversation_id, message_id
         from conversation_messages where words @@ $1::text::tsquery ${only} order by score desc limit $2)
       order by score desc limit $2`,
      wordQuery,
      limit,
      ...values,
    );
    return rows.map(toHit);
  }

  async counts(): Promise<port.StoreCounts> {
    const [sessions, [queue]] = await Promise.all([
      this.#lists.counts({}),
      this.#pool.query(
        "select count(*)::integer as queue_depth, min(created_at) as oldest_pending_at from queue where not processed",
      ),
    ]);
    return { sessions, ...(queue as Omit<port.StoreCounts, "sessions">) };
  }

  async sumCosts(since: string): Promise<SessionCosts[]> {
    const rows = await this.#pool.query(
      `select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day, agent_id, options ->> 'model' as model,
         count(*)::integer as sessions, sum(tokens_used)::double precision as tokens_used, sum(cost_usd) as cost_usd
       from agent_state where created_at >= $1 and tokens_used > 0 group by 1, 2, 3`,
      since,
    );
    return (rows as SessionCosts[]).map((row) => ({ ...row, agent_id: fromText(row.agent_id) }));
  }

  /** The processes that share the database, oldest first. */
  async listWorkers(): Promise<port.WorkerInfo[]> {
    const rows = await this.#pool.query(
      `select w.name, w.started_at, w.takes_sessions,
         (select count(*)::integer from agent_state s where s.node_no = w.node_no) as owned_sessions,
         (select count(*)::integer from queue q where q.claimed_by = w.node_no) as actions_under_way,
         w.blocked_ms, greatest(0, extract(epoch from now() - w.renewed_at) * 1000)::integer as silent_ms
       from workers w where w.expires_at > now() order by w.node_no`,
    );
    return rows as unknown as port.WorkerInfo[];
  }

  /** Where sessions stand now. */
  async sessionPositions(session_ids: string[]): Promise<(Position & { session_id: string; updated_at: string })[]> {
    const rows = await this.#pool.query(
      "select session_id, iteration, error_rows, updated_at from agent_state where session_id = any ($1::text[])",
      textArray(session_ids),
    );
    return rows.map((row) => ({ ...row, session_id: fromText(row["session_id"] as string) })) as never;
  }

  async sessionsMovedSince(time: string): Promise<string[]> {
    const rows = await this.#pool.query(
      `select session_id from agent_state where updated_at >= $1::timestamptz
         and updated_period >= floor(extract(epoch from $1::timestamptz) / 10)::bigint limit 10000`,
      time,
    );
    return rows.map((row) => fromText(row["session_id"] as string));
  }

  /** Turns rows of `sessionColumns` into sessions with states. Steps never change, so they can be read in a second statement. */
  async loadSessions(rows: Row[]): Promise<LoadedSession[]> {
    const chains = await this.#chains(rows.filter(({ base_iteration }) => base_iteration !== null));
    return rows.map((row) => {
      const { session_id } = row as { session_id: string };
      const chain = chains.get(session_id) ?? null;
      const context = chain?.state ?? (JSON.parse((row["context"] as string | null) ?? "{}") as JsonObject);
      return {
        session: { ...this.#tables.toRow("agent_state", row), context },
        chain,
        error_rows: Number(row["error_rows"]),
        epoch: Number(row["epoch"]),
        revision: Number(row["revision"]),
        after_crash: row["owner_died"] === true,
      };
    });
  }

  /** Rows of a table, `r`, as the port has them. */
  async #rows<Name extends TableName>(table: Name, where: string, ...values: Parameter[]): Promise<PortRows[Name][]> {
    const rows = await this.#pool.query(
      `select ${this.#tables.selected(table, "r")} from ${table} r ${where}`,
      ...values,
    );
    return rows.map((row) => this.#tables.toRow(table, row));
  }

  async #sessions(where: string, ...values: Parameter[]): Promise<Session[]> {
    const rows = await this.#pool.query(`select ${this.sessionColumns} from agent_state s ${where}`, ...values);
    return (await this.loadSessions(rows)).map(({ session }) => session);
  }

  async #sessionsById(stored_ids: string[]): Promise<Session[]> {
    return this.#sessions("where s.session_id = any ($1::text[])", arrayOf(stored_ids));
  }

  async #findSessions(filter: ListFilter, text: string): Promise<FoundSessions> {
    if (text !== "") return this.#search.find(filter, text);
    const few = isOfFew(filter);
    const [session_ids, counts] = await Promise.all([
      this.#lists.page(filter),
      few || filter.since !== undefined ? this.#countSome(filter) : this.#lists.counts(filter),
    ]);
    const exact = few || filter.since === undefined || totalOf(counts) < MOST_COUNTED_SINCE;
    const total = totalOf(counts, filter.statuses);
    const { limit, offset } = filter;
    // If counting stopped at its limit, there are at least the page's rows, and one more if the page is full.
    const shown = offset + session_ids.length + (session_ids.length === limit ? 1 : 0);
    return { session_ids, total: exact || session_ids.length === 0 ? total : Math.max(total, shown), counts, exact };
  }

  /** Counts sessions given by id or by the session they came from, which are few; those since a time are counted up to a limit. */
  async #countSome(filter: ListFilter): Promise<port.StoreCounts["sessions"]> {
    const values = new Values();
    const where = toWhere(listConditions(filter, values));
    return toCounts(
      await this.#pool.query(
        `select s.status, count(*) as count
         from (select s.status from agent_state s ${where} limit ${MOST_COUNTED_SINCE}) s group by s.status`,
        ...values.list,
      ),
    );
  }

  /** Finds each agent from the one before it, without reading all sessions of an agent. */
  async #agents(only: string | null, { limit, offset }: port.Page): Promise<Agent[]> {
    const rows = await this.#pool.query(
      `with recursive a as (
         (select agent_id from agent_state ${only === null ? "" : "where agent_id = $3"} order by agent_id limit 1)
         union all select (select s.agent_id from agent_state s where s.agent_id > a.agent_id order by s.agent_id limit 1)
           from a where a.agent_id is not null ${only === null ? "" : "and false"}),
       page as materialized (select agent_id from a where agent_id is not null limit $1 offset $2),
       changes as materialized (select agent_id, status, sum(change) as count from session_count_changes group by 1, 2)
       select p.agent_id, (select json_agg(c) from (select status, sum(count)::integer as count from (
             select status, count from session_counts where agent_key = '=' || p.agent_id
             union all select status, count from changes where agent_id = p.agent_id) n group by status) c) as counts,
         (select s.session_id from agent_state s where s.agent_id = p.agent_id order by s.number desc limit 1) as latest
       from page p order by p.agent_id`,
      limit,
      offset,
      ...(only === null ? [] : [toText(only)]),
    );
    const sessions = await this.#sessionsById(rows.map((row) => row["latest"] as string));
    const latest = new Map(sessions.map((session) => [session.session_id, session]));
    return rows.flatMap((row) => {
      const session = latest.get(fromText(row["latest"] as string));
      const counts = toCounts((row["counts"] as Row[] | null) ?? []);
      const agent_id = fromText(row["agent_id"] as string);
      return session
        ? [{ agent_id, moniker: session.moniker, session_count: totalOf(counts), counts, latest: session }]
        : [];
    });
  }

  /** The agent's most recently updated session that has a step. */
  async #lastMoved(agent_id: string): Promise<string | null> {
    const [row] = await this.#pool.query(
      `select session_id from agent_state where agent_id = $1 and (iteration >= 0 or error_rows > 0)
       order by updated_period desc, updated_at desc, number desc limit 1`,
      toText(agent_id),
    );
    return row ? fromText(row["session_id"] as string) : null;
  }

  async #numberAfter(conversation_id: string, message_id: string): Promise<number | null> {
    const [row] = await this.#pool.query(
      `select number from conversation_messages where message_id = $1 and conversation_id = $2
       union all select number from archived_messages where message_id = $1 and conversation_id = $2`,
      toText(message_id),
      toText(conversation_id),
    );
    return row ? Number(row["number"]) + 1 : null;
  }

  async #chains(rows: Row[]): Promise<Map<string, Chain>> {
    const chains = new Map<string, Chain>();
    if (rows.length === 0) return chains;
    const steps = await this.#pool.query(
      `select t.session_id, t.state_kind, t.base_iteration, t.state::text as state
       from unnest($1::text[], $2::integer[], $3::integer[]) as w (session_id, first, last)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last and t.place = ${OK_ROW_ORDER}
       order by t.session_id, t.iteration`,
      arrayOf(rows.map((row) => row["session_id"] as string)),
      arrayOf(rows.map((row) => row["base_iteration"] as number)),
      arrayOf(rows.map((row) => row["iteration"] as number)),
    );
    for (const step of steps) {
      const id = step["session_id"] as string;
      chains.set(id, readState(chains.get(id) ?? null, step as never));
    }
    return chains;
  }

  async #stepsOfSession(filter: port.StepFilter & { session_id: string }): Promise<Step[]> {
    const max_iteration = Math.min(filter.max_iteration ?? LAST_ITERATION, LAST_ITERATION);
    for (;;) {
      const line = await this.#line(filter.session_id);
      const { parts, offset } = pageParts({ ...filter, max_iteration }, lineageOf(line));
      const ids = line.map(({ session_id }) => session_id);
      const rows = parts.length === 0 ? [] : await this.#stepsOf(parts, { ...filter, offset }, ids);
      if (rows[0]?.["is_archived"] === false) return this.#decode(rows);
      const ancestors = line.map((ancestor) => ({ ...ancestor, session_id: fromText(ancestor.session_id) }));
      const owners = { owner_ids: ancestors.map(({ session_id }) => session_id) };
      const ranges = await this.volumes.ranges(owners);
      if (ranges.length === 0) return this.#decode(rows);
      const steps = await this.#stepsWithArchived({ ...filter, max_iteration }, ancestors, ranges);
      if (isSame(ranges, await this.volumes.ranges(owners))) return steps;
    }
  }

  #stepsWithArchived(
    filter: port.StepFilter & { session_id: string },
    line: readonly Ancestor[],
    ranges: readonly ArchivedRange[],
  ): Promise<Step[]> {
    return this.volumes.history.steps(filter, line, ranges, async (part) => {
      const { from, to } = iterationsOf(part);
      const stretch = { session_id: toText(part.session_id), first: from, last: Math.min(to, LAST_ITERATION) };
      return this.#decode(await this.#stepsOf([stretch], part, []));
    });
  }

  /** What the table has of these stretches, and whether volumes have, or had, steps of these sessions. */
  async #stepsOf(parts: PageParts["parts"], filter: port.StepFilter, stored_ids: string[]): Promise<StepRow[]> {
    const rows = await this.#pool.query(
      `select ${this.#stepColumns}, exists (select 1 from archived_ranges where owner_id = any ($6::text[])) as is_archived
       from unnest($1::text[], $2::integer[], $3::integer[]) as w (session_id, first, last)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last
       where true ${stepConditions(filter, 7)} order by t.iteration, t.place limit $4 offset $5`,
      ...stretchArrays(parts),
      filter.limit,
      filter.offset,
      arrayOf(stored_ids),
      ...stepValues(filter),
    );
    return rows as StepRow[];
  }

  async #lineage(session_id: string) {
    return lineageOf(await this.#line(session_id));
  }

  /** The session, its parent, and so on. */
  async #line(session_id: string): Promise<Ancestor[]> {
    const rows = await this.#pool.query(
      `with recursive line as (
         select session_id, parent_session_id, parent_iteration, error_rows, 0 as generation
         from agent_state where session_id = $1
         union all
         select p.session_id, p.parent_session_id, p.parent_iteration, p.error_rows, l.generation + 1
         from line l join agent_state p on p.session_id = l.parent_session_id)
       select session_id, parent_iteration, error_rows from line order by generation`,
      toText(session_id),
    );
    return rows.map((row) => ({
      session_id: row["session_id"] as string,
      parent_iteration: row["parent_iteration"] as number | null,
      error_rows: Number(row["error_rows"]),
    }));
  }

  async #decode(rows: StepRow[]): Promise<Step[]> {
    const bases = await this.#basesOf(rows);
    const page = rows.map(
      (row): StepWithBases => ({
        step: { stored: row, port: this.#tables.toRow("agent_steps", row) },
        bases: bases.get(row) ?? [],
      }),
    );
    return decodeSteps(page);
  }

  /** The earlier steps that are needed to rebuild the states of a page. */
  async #basesOf(rows: StepRow[]): Promise<Map<StepRow, StepRow[]>> {
    const key = (session_id: string, iteration: number): string => `${iteration} ${session_id}`;
    const seen = new Set<string>();
    const lacking: StepRow[] = [];
    for (const row of rows) {
      if (row.status === "error") continue;
      if (row.state_kind === "delta" && !seen.has(key(row.session_id, row.iteration - 1))) lacking.push(row);
      seen.add(key(row.session_id, row.iteration));
    }
    if (lacking.length === 0) return new Map();
    const bases = (await this.#pool.query(
      `select w.number, t.session_id, t.iteration, t.state_kind, t.base_iteration, t.state::text as state
       from unnest($1::text[], $2::integer[], $3::integer[], $4::integer[]) as w (session_id, first, last, number)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last and t.place = ${OK_ROW_ORDER}
       order by w.number, t.iteration`,
      ...stretchArrays(
        lacking.map((row) => ({ session_id: row.session_id, first: row.base_iteration, last: row.iteration - 1 })),
      ),
      arrayOf(lacking.map((_, at) => at)),
    )) as StepRow[];
    const byNumber = Map.groupBy(bases, ({ number }) => Number(number));
    return new Map(lacking.map((row, at) => [row, byNumber.get(at) ?? []]));
  }
}

/** Batches reads: rows requested one by one in the same turn of the event loop are read in one statement. */
class BatchedLookup<Value> {
  readonly #read: (ids: string[]) => Promise<Map<string, Value>>;
  readonly #ids = new Set<string>();
  #reading: Promise<Map<string, Value>> | undefined;

  constructor(read: (ids: string[]) => Promise<Map<string, Value>>) {
    this.#read = read;
  }

  async get(id: string): Promise<Value | null> {
    this.#ids.add(id);
    this.#reading ??= new Promise(setImmediate).then(() => {
      const ids = [...this.#ids];
      this.#ids.clear();
      this.#reading = undefined;
      return this.#read(ids);
    });
    return (await this.#reading).get(id) ?? null;
  }
}

type CursorKey = { session_id: string; conversation_id: string };

const textArray = (texts: readonly string[]): string => arrayOf(texts.map(toText));
const optionalText = (text: string | undefined): string | undefined => (text === undefined ? undefined : toText(text));

/** The conditions that have a value. Their parameters start at the third: the first two are the page. */
function conditions(all: [condition: string, value: Parameter | undefined][]): { where: string; values: Parameter[] } {
  const present = all.filter((entry): entry is [string, Parameter] => entry[1] !== undefined);
  const where = present.map(([condition], at) => `${condition} $${at + 3}`).join(" and ");
  return { where: where && `where ${where}`, values: present.map(([, value]) => value) };
}

const stretchArrays = (parts: Stretch[]): [string, string, string] => [
  arrayOf(parts.map(({ session_id }) => session_id)),
  arrayOf(parts.map(({ first }) => first)),
  arrayOf(parts.map(({ last }) => last)),
];

function stepConditions({ since_created_at, status }: port.StepFilter, next: number): string {
  const since = since_created_at === undefined ? "" : `and t.created_at >= $${next}::timestamptz`;
  return `${since}${status === undefined ? "" : ` and t.status = $${since ? next + 1 : next}`}`;
}

const stepValues = ({ since_created_at, status }: port.StepFilter): Parameter[] =>
  [since_created_at, status].filter((value) => value !== undefined);

/** Puts rows in the order of a list of ids. Rows that are gone meanwhile are left out. */
function inOrder<Listed extends { session_id: string }>(session_ids: readonly string[], rows: Listed[]): Listed[] {
  const byId = new Map(rows.map((row) => [row.session_id, row]));
  return session_ids.flatMap((id) => byId.get(id) ?? []);
}

function toHit(row: Record<string, unknown>): SearchHit {
  const present = Object.entries(row).filter(([, value]) => value !== null);
  return Object.fromEntries(
    present.map(([name, value]) => [name, typeof value === "string" ? fromText(value) : value]),
  ) as unknown as SearchHit;
}
