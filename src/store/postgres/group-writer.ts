import { setTimeout as wait } from "node:timers/promises";
import { EverstepError } from "../../domain/errors.ts";
import type { CommitOutcome } from "../store.ts";
import { Collisions, LAST_SILENCE_MS, LOCK_TIMEOUT, openClient, type Row, SteadyClient } from "./connections.ts";
import { controlStatement } from "./control-statement.ts";
import type { BatchRows, EncodedBatch } from "./encoded-batch.ts";
import { groupStatement } from "./group-statement.ts";
import { stepStatement } from "./step-statement.ts";
import {
  closed,
  isCollision,
  isDuplicate,
  isOutOfReach,
  toStoreError,
  wasNotSent,
  wasRefused,
} from "./store-errors.ts";
import type { TableName } from "./tables.ts";
import { fromText } from "./values.ts";
import type { Statement, WriterPlace } from "./writer-place.ts";

/** What the answer to a group told beside the outcomes; null where the answer was lost. */
export type Told = {
  /** The numbers that messages got. */
  numbers: ReadonlyMap<string, number>;
  /** Actions that were claimed as they were written. */
  claimed: ReadonlySet<string>;
  /** Sessions that have another action after one that ended. */
  more: ReadonlySet<string>;
} | null;
type Outcome = { outcome: CommitOutcome; told: Told } | { error: unknown };

const SETTINGS = {
  ...LOCK_TIMEOUT,
  // The statement is large and always planned the same way: by its keys, however small the tables were at first.
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};
const RETRY_MS = 100;
/** A server that does not answer for this long, in milliseconds, is given up, and asked anew on another connection. */
const SILENCE_MS = 15_000;

/**
 * Writes groups of batches, one group at a time, over one connection.
 *
 * W1  A group whose answer was lost is in doubt: nothing more is written until the database told what became of it. So a
 *     commit is never repeated that had gone through, and never given up that may have.
 */
export class GroupWriter {
  readonly #place: { node_no: number; writer_no: number };
  readonly #client: SteadyClient;
  #attempt = 0;
  #group_no = 0;
  #closing = false;

  constructor(url: string, node_no: number, writer_no: number) {
    this.#place = { node_no, writer_no };
    this.#client = new SteadyClient(() => openClient(url, { max: 1, settings: SETTINGS }), SILENCE_MS);
  }

  async register(): Promise<void> {
    const { node_no, writer_no } = this.#place;
    await this.#client.run("insert into writers (node_no, writer_no) values ($1, $2)", [node_no, writer_no]);
  }

  /** Lets the server plan the statements of most groups, which takes longer than to run them, before the first group comes. */
  async rehearse(): Promise<void> {
    const place = { ...this.#place, attempt: this.#attempt, group_no: 0 };
    const statements = [
      stepStatement([], place),
      controlStatement([], place),
      ...USUAL_TABLES.map((tables) => groupStatement([rowsOf(tables)], place)),
    ];
    for (const { text, parameters } of statements) await this.#client.run(text, parameters);
  }

  /**
   * Answers for each batch; all are of one kind. A group that cannot be written as one is written one by one, so that none
   * spoils the others.
   */
  async write(batches: EncodedBatch[]): Promise<Outcome[]> {
    const collisions = new Collisions();
    for (;;) {
      try {
        return await this.#writeOnce(batches);
      } catch (error) {
        if (!this.#closing && (await collisions.mayRepeat(error))) continue;
        // What is in doubt is not written a second time, and what the server has no time or room for is not asked for one by one.
        const concernsAll =
          isOutOfReach(error) || error instanceof EverstepError || (isCollision(error) && !isDuplicate(error));
        if (concernsAll || batches.length === 1) return batches.map(() => ({ error: toStoreError(error) }));
        const alone: Outcome[] = [];
        for (const batch of batches) alone.push(...(await this.write([batch])));
        return alone;
      }
    }
  }

  async #writeOnce(batches: EncodedBatch[]): Promise<Outcome[]> {
    const group_no = ++this.#group_no;
    for (;;) {
      const { text, parameters } = statementFor(batches, { ...this.#place, attempt: this.#attempt, group_no });
      try {
        const rows = await this.#client.run(text, parameters);
        return outcomesFrom(rows, batches.length);
      } catch (error) {
        // Only what may have reached the server, and was not answered, is in doubt.
        if (wasRefused(error) || wasNotSent(error)) throw error;
        const refused = await this.#resolve(group_no); // W1
        if (refused) return outcomesFrom(refused, batches.length).map((one) => ({ ...one, told: null }));
        if (!isOutOfReach(error)) throw error;
      }
    }
  }

  /** What was refused of a group that went through; null where it did not, and now never will. */
  async #resolve(group_no: number): Promise<Row[] | null> {
    for (;;) {
      if (this.#closing) throw closed();
      try {
        const [row] = await this.#client.run(
          `insert into writers as w (node_no, writer_no, attempt) values ($1, $2, 1)
           on conflict (node_no, writer_no) do update set attempt = w.attempt + 1 returning attempt, group_no, refused`,
          [this.#place.node_no, this.#place.writer_no],
        );
        this.#attempt = Number(row?.["attempt"]);
        if (Number(row?.["group_no"]) !== group_no) return null;
        const refused = row?.["refused"] as [number, string, string][];
        return refused.map(([batch, reason, id]) => ({ kind: "refused", batch, reason, id }));
      } catch {
        // Whatever the reason is: until it is known what became of the group, nothing may be told of it.
        await wait(RETRY_MS);
      }
    }
  }

  /** The process stops: what the server leaves in doubt is soon given up. */
  prepareToStop(): void {
    this.#client.prepareToStop();
    setTimeout(() => {
      this.#closing = true;
    }, LAST_SILENCE_MS).unref();
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#client.end(2);
  }
}

/** The tables of most groups: a request, what it does to a session, a session's last step, a step that was guided. */
const USUAL_TABLES: TableName[][] = [
  ["agent_state", "queue"],
  ["queue"],
  ["agent_state", "agent_steps"],
  ["agent_state", "agent_steps", "queue"],
];
const rowsOf = (tables: TableName[]): BatchRows => ({ rows: Object.fromEntries(tables.map((table) => [table, []])) });

function statementFor(batches: readonly EncodedBatch[], place: WriterPlace): Statement {
  const kind = batches[0]?.kind;
  if (batches.some((batch) => batch.kind !== kind)) throw new TypeError("batches of several kinds were given together");
  const rows = batches.flatMap((batch) => (batch.kind === "rows" ? [] : [batch.row]));
  if (kind === "step") return stepStatement(rows, place);
  if (kind === "control") return controlStatement(rows, place);
  return groupStatement(batches as readonly BatchRows[], place);
}

/** The first refusal of a batch counts; a batch that was fenced is told so before anything else. */
function outcomesFrom(rows: Row[], count: number): { outcome: CommitOutcome; told: Told }[] {
  const refused = new Map<number, CommitOutcome>();
  const told = { numbers: new Map<string, number>(), claimed: new Set<string>(), more: new Set<string>() };
  let isOpen = rows.every(({ kind }) => kind === "refused");
  for (const { kind, batch, reason, id, number } of rows) {
    if (kind === "gate") isOpen ||= Number(batch) === 1;
    else if (kind === "message") told.numbers.set(fromText(String(id)), Number(number));
    else if (kind === "claimed") told.claimed.add(fromText(String(id)));
    else if (kind === "more") told.more.add(fromText(String(id)));
    else if (reason === "fenced" || !refused.has(Number(batch)))
      refused.set(Number(batch), refusal(String(reason), fromText(String(id))));
  }
  // G2: this process was taken for gone, and is not told that anything went through.
  if (!isOpen) throw Object.assign(new Error("the writer's place was taken"), { code: "57P01" });
  return Array.from({ length: count }, (_, at) => ({ outcome: refused.get(at) ?? { kind: "committed" }, told }));
}

const refusal = (reason: string, id: string): CommitOutcome =>
  reason === "fenced" || reason === "queue_not_empty"
    ? { kind: reason, session_id: id }
    : { kind: "exists", table: reason as "conversations", id };
