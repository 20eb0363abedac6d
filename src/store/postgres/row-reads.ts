import type { Action } from "../../domain/action.ts";
import type { AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { GuidanceAmount } from "../guidance-amount.ts";
import type { ActionFilter, ConversationFilter, MessageFilter, Page, SearchQuery, StoreCounts } from "../store.ts";
import { GUIDANCE } from "./claim-statements.ts";
import type { Parameter, Pool } from "./connections.ts";
import { Gathered } from "./gathered.ts";
import { selected, toRow } from "./tables.ts";
import { arrayOf, fromText, toText } from "./values.ts";
import { toWordQuery } from "./words.ts";

/** Reads of everything but sessions and steps. */
export class RowReads {
  readonly #pool: Pool;
  /** Every creation looks for one. */
  readonly #agentConfigs = new Gathered(async (agent_ids) => {
    const rows = await this.#pool.query(
      `select ${selected("agent_config", "a")} from agent_config a where a.agent_id = any ($1::text[])`,
      arrayOf(agent_ids.map(toText)),
    );
    return new Map(rows.map((row) => toRow("agent_config", row)).map((config) => [config.agent_id, config]));
  });

  /** Every request to a session of another process looks for one. */
  readonly #sessionAgents = new Gathered(async (session_ids) => {
    const rows = await this.#pool.query(
      "select session_id, agent_id from agent_state where session_id = any ($1::text[])",
      arrayOf(session_ids.map(toText)),
    );
    return new Map(
      rows.map(({ session_id, agent_id }) => [fromText(String(session_id)), fromText(String(agent_id))] as const),
    );
  });

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async sessionAgent(session_id: string): Promise<string | null> {
    return (await this.#sessionAgents.get(session_id)) ?? null;
  }

  async action(action_id: string): Promise<Action | null> {
    return (await this.#actions("where q.action_id = $1", toText(action_id)))[0] ?? null;
  }

  someActions(action_ids: string[]): Promise<Action[]> {
    return this.#actions("where q.action_id = any ($1::text[])", arrayOf(action_ids.map(toText)));
  }

  actions({ session_id, agent_id, processed, limit, offset }: ActionFilter): Promise<Action[]> {
    const { where, values } = conditions([
      ["q.session_id =", session_id === undefined ? undefined : toText(session_id)],
      ["q.agent_id =", agent_id === undefined ? undefined : toText(agent_id)],
      ["q.processed =", processed],
    ]);
    return this.#actions(
      `${where} order by q.created_at desc, q.action_id desc limit $1 offset $2`,
      limit,
      offset,
      ...values,
    );
  }

  async unusedGuidance(session_id: string): Promise<GuidanceAmount> {
    const [row] = await this.#pool.query(
      `select q.count + coalesce(jsonb_array_length(s.pending_guidance), 0) as count,
         (q.bytes + coalesce(octet_length(s.pending_guidance::text), 0))::double precision as bytes
       from (select count(*)::integer as count, coalesce(sum(octet_length(payload::text)), 0) as bytes from queue
         where session_id = $1 and not processed and action_type in (${GUIDANCE})) q
       left join agent_state s on s.session_id = $1`,
      toText(session_id),
    );
    return row as GuidanceAmount;
  }

  async queue(): Promise<Omit<StoreCounts, "sessions">> {
    const [row] = await this.#pool.query(
      "select count(*)::integer as queue_depth, min(created_at) as oldest_pending_at from queue where not processed",
    );
    return row as Omit<StoreCounts, "sessions">;
  }

  async conversation(conversation_id: string): Promise<Conversation | null> {
    const [row] = await this.#pool.query(
      `select ${selected("conversations", "c")} from conversations c where c.conversation_id = $1`,
      toText(conversation_id),
    );
    return row ? toRow("conversations", row) : null;
  }

  async conversations({ status, tag, limit, offset }: ConversationFilter): Promise<Conversation[]> {
    const { where, values } = conditions([
      ["c.status =", status],
      ["c.tags ?", tag === undefined ? undefined : toText(tag)],
    ]);
    const rows = await this.#pool.query(
      `select ${selected("conversations", "c")} from conversations c ${where}
       order by c.number desc limit $1 offset $2`,
      limit,
      offset,
      ...values,
    );
    return rows.map((row) => toRow("conversations", row));
  }

  async participant(participant_id: string): Promise<Participant | null> {
    const [row] = await this.#pool.query(
      `select ${selected("conversation_participants", "p")} from conversation_participants p where p.participant_id = $1`,
      toText(participant_id),
    );
    return row ? toRow("conversation_participants", row) : null;
  }

  async participants(conversation_id: string): Promise<Participant[]> {
    const rows = await this.#pool.query(
      `select ${selected("conversation_participants", "p")} from conversation_participants p
       where p.conversation_id = $1 order by p.number`,
      toText(conversation_id),
    );
    return rows.map((row) => toRow("conversation_participants", row));
  }

  async message(message_id: string): Promise<Message | null> {
    const [row] = await this.#pool.query(
      `select ${selected("conversation_messages", "m")} from conversation_messages m where m.message_id = $1`,
      toText(message_id),
    );
    return row ? toRow("conversation_messages", row) : null;
  }

  async messages({ conversation_id, since, after, limit, offset }: MessageFilter): Promise<Message[]> {
    const from = after === undefined || after === "" ? 1 : await this.#numberAfter(conversation_id, after);
    if (from === null) return [];
    const rows = await this.#pool.query(
      // Numbers have no gaps, so an offset into them is a range.
      `select ${selected("conversation_messages", "m")} from conversation_messages m
       where m.conversation_id = $1 and m.number >= $2 ${since === undefined ? "" : "and m.created_at >= $5::timestamptz"}
       order by m.number limit $3 offset $4`,
      toText(conversation_id),
      since === undefined ? from + offset : from,
      limit,
      since === undefined ? 0 : offset,
      ...(since === undefined ? [] : [since]),
    );
    return rows.map((row) => toRow("conversation_messages", row));
  }

  /** The messages from a number on, with their numbers. */
  async messagesFrom(
    conversation_id: string,
    number: number,
    limit: number,
  ): Promise<{ message: Message; number: number }[]> {
    const rows = await this.#pool.query(
      `select ${selected("conversation_messages", "m")}, m.number from conversation_messages m
       where m.conversation_id = $1 and m.number >= $2 order by m.number limit $3`,
      toText(conversation_id),
      number,
      limit,
    );
    return rows.map((row) => ({ message: toRow("conversation_messages", row), number: Number(row["number"]) }));
  }

  /** The number of the last message of each conversation that has one. */
  /** A message's place in its conversation. */
  async messageNumber(message_id: string): Promise<number | null> {
    const [row] = await this.#pool.query(
      "select number from conversation_messages where message_id = $1",
      toText(message_id),
    );
    return row ? Number(row["number"]) : null;
  }

  async lastNumbers(conversation_ids: string[]): Promise<Map<string, number>> {
    const rows = await this.#pool.query(
      "select conversation_id, last_number from conversation_numbers where conversation_id = any ($1::text[])",
      arrayOf(conversation_ids.map(toText)),
    );
    return new Map(rows.map((row) => [fromText(row["conversation_id"] as string), Number(row["last_number"])]));
  }

  async cursor(cursor: { session_id: string; conversation_id: string }): Promise<SessionCursor | null> {
    const [row] = await this.#pool.query(
      `select ${selected("session_cursors", "c")} from session_cursors c where c.session_id = $1 and c.conversation_id = $2`,
      toText(cursor.session_id),
      toText(cursor.conversation_id),
    );
    return row ? toRow("session_cursors", row) : null;
  }

  agentConfig(agent_id: string): Promise<AgentConfig | null> {
    return this.#agentConfigs.get(agent_id);
  }

  async agentConfigs({ limit, offset }: Page): Promise<AgentConfig[]> {
    const rows = await this.#pool.query(
      `select ${selected("agent_config", "a")} from agent_config a order by a.agent_id limit $1 offset $2`,
      limit,
      offset,
    );
    return rows.map((row) => toRow("agent_config", row));
  }

  async search({ q, agent_id, session_id, limit }: SearchQuery): Promise<SearchHit[]> {
    const wanted = toWordQuery(q);
    if (wanted === null) return [];
    const filters = [
      ["agent_id =", agent_id === undefined ? undefined : toText(agent_id)],
      ["session_id =", session_id === undefined ? undefined : toText(session_id)],
    ] as [string, Parameter | undefined][];
    const { where, values } = conditions(filters);
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
      wanted,
      limit,
      ...values,
    );
    return rows.map(toHit);
  }

  async #numberAfter(conversation_id: string, message_id: string): Promise<number | null> {
    const [row] = await this.#pool.query(
      "select number from conversation_messages where message_id = $1 and conversation_id = $2",
      toText(message_id),
      toText(conversation_id),
    );
    return row ? Number(row["number"]) + 1 : null;
  }

  async #actions(where: string, ...parameters: Parameter[]): Promise<Action[]> {
    const rows = await this.#pool.query(`select ${selected("queue", "q")} from queue q ${where}`, ...parameters);
    return rows.map((row) => toRow("queue", row));
  }
}

/** Conditions that are asked for, their values from the third parameter on: the first two are the page. */
function conditions(wanted: [condition: string, value: Parameter | undefined][]): {
  where: string;
  values: Parameter[];
} {
  const given = wanted.filter((entry): entry is [string, Parameter] => entry[1] !== undefined);
  const where = given.map(([condition], at) => `${condition} $${at + 3}`).join(" and ");
  return { where: where && `where ${where}`, values: given.map(([, value]) => value) };
}

function toHit(row: Record<string, unknown>): SearchHit {
  const known = Object.entries(row).filter(([, value]) => value !== null);
  return Object.fromEntries(
    known.map(([name, value]) => [name, typeof value === "string" ? fromText(value) : value]),
  ) as unknown as SearchHit;
}
