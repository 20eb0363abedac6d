import { setTimeout as wait } from "node:timers/promises";
import { EverstepError } from "../../domain/errors.ts";
import type { GroupWriter as Writer, Written } from "../commit-queue.ts";
import type { CommitOutcome } from "../store.ts";
import { closed } from "../store-errors.ts";
import type { BatchStatements, EncodedBatch } from "./batch-statement.ts";
import {
  Collisions,
  isCollision,
  isDuplicate,
  isOutOfReach,
  LAST_SILENCE_MS,
  LOCK_TIMEOUT,
  openClient,
  type Row,
  SteadyClient,
  toStoreError,
  wasNotSent,
  wasRefused,
} from "./connections.ts";
import { fromText } from "./tables.ts";

/** What the answer to a group contains besides the outcomes; null if the answer was lost. */
export type WriteFeedback = {
  /** The numbers that the messages were given. */
  numbers: ReadonlyMap<string, number>;
  /** Actions that the same statement wrote and claimed. */
  claimed: ReadonlySet<string>;
  /** Sessions that still have a pending action after one of theirs ended. */
  more: ReadonlySet<string>;
} | null;
type Outcome = Written<WriteFeedback>;

const SETTINGS = {
  ...LOCK_TIMEOUT,
  // The statement is large; one generic plan that goes by keys is right for it, however small the tables are at first.
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};
const RETRY_MS = 100;
/** Milliseconds of silence after which the connection is given up and the server is asked on another one. */
const SILENCE_MS = 15_000;

type State =
  | { kind: "idle" }
  | { kind: "writing"; group_no: number }
  | { kind: "in_doubt"; group_no: number }
  | { kind: "closed" };

/**
 * Writes groups of batches, one group at a time, over one connection.
 *
 * - `idle`: the outcome of the last group is known. `write` moves it to `writing`.
 * - `writing`: one group is on its way. An answer, or an error of the server, which leaves nothing behind, moves it back to `idle`.
 *   A lost answer moves it to `in_doubt`.
 * - `in_doubt`: it asks the database over fresh connections what became of the group, as often as it takes. If the group was
 *   written, it is `idle`. If not, the question itself has made sure that it never will be: it is `idle`, and then `writing` the
 *   same group again if only the connection had failed.
 * - `closed`: by `close`, and some seconds after `prepareToStop`. A group that is in doubt then fails.
 *
 * WRITER-1  Nothing more is written while a group is in doubt. So a commit that went through is never repeated, and one that may
 *           have gone through is never reported as failed.
 */
export class GroupWriter implements Writer<EncodedBatch, WriteFeedback> {
  readonly #id: { node_no: number; writer_no: number };
  readonly #statements: BatchStatements;
  readonly #client: SteadyClient;
  #state: State = { kind: "idle" };
  #attempt = 0;
  #lastGroup = 0;

  constructor(url: string, id: { node_no: number; writer_no: number }, statements: BatchStatements) {
    this.#id = id;
    this.#statements = statements;
    this.#client = new SteadyClient(() => openClient(url, { max: 1, settings: SETTINGS }), SILENCE_MS);
  }

  async register(): Promise<void> {
    const { node_no, writer_no } = this.#id;
    await this.#client.run("insert into writers (node_no, writer_no) values ($1, $2)", [node_no, writer_no]);
  }

  /** Has the server plan the usual statements before the first group comes: planning takes longer than running them. */
  async rehearse(): Promise<void> {
    const attempt = { ...this.#id, attempt: this.#attempt, group_no: 0 };
    for (const { text, parameters } of this.#statements.common(attempt)) await this.#client.run(text, parameters);
  }

  /**
   * Returns an outcome for each batch; all are of one kind. If the group fails as a whole, its batches are written one by one, so
   * that a bad one does not fail the others.
   */
  async write(batches: EncodedBatch[]): Promise<Outcome[]> {
    const collisions = new Collisions();
    for (;;) {
      try {
        return await this.#writeOnce(batches);
      } catch (error) {
        if (this.#state.kind !== "closed" && (await collisions.mayRepeat(error))) continue;
        // Not for a group that is in doubt, nor for one that the server has no time or room for.
        const concernsAll =
          isOutOfReach(error) || error instanceof EverstepError || (isCollision(error) && !isDuplicate(error));
        if (concernsAll || batches.length === 1) return batches.map(() => ({ error: toStoreError(error) }));
        const answers: Outcome[] = [];
        for (const batch of batches) answers.push(...(await this.write([batch])));
        return answers;
      }
    }
  }

  async #writeOnce(batches: EncodedBatch[]): Promise<Outcome[]> {
    const group_no = ++this.#lastGroup;
    for (;;) {
      this.#enter({ kind: "writing", group_no });
      const attempt = { ...this.#id, attempt: this.#attempt, group_no };
      const { text, parameters } = this.#statements.statement(batches, attempt);
      try {
        const rows = await this.#client.run(text, parameters);
        const outcomes = outcomesFrom(rows, batches.length);
        this.#enter({ kind: "idle" });
        return outcomes;
      } catch (error) {
        // Only a group that may have reached the server and was not answered is in doubt.
        if (wasRefused(error) || wasNotSent(error)) {
          this.#enter({ kind: "idle" });
          throw error;
        }
        this.#enter({ kind: "in_doubt", group_no }); // WRITER-1
        const refused = await this.#resolveDoubt(group_no);
        this.#enter({ kind: "idle" });
        if (refused) return outcomesFrom(refused, batches.length).map((answer) => ({ ...answer, feedback: null }));
        if (!isOutOfReach(error)) throw error;
      }
    }
  }

  /** Returns what was refused of a group that was written; null if it was not written and now never will be. */
  async #resolveDoubt(group_no: number): Promise<Row[] | null> {
    for (;;) {
      if (this.#state.kind === "closed") throw closed();
      try {
        const [row] = await this.#client.run(
          `insert into writers as w (node_no, writer_no, attempt) values ($1, $2, 1)
           on conflict (node_no, writer_no) do update set attempt = w.attempt + 1 returning attempt, group_no, refused`,
          [this.#id.node_no, this.#id.writer_no],
        );
        this.#attempt = Number(row?.["attempt"]);
        if (Number(row?.["group_no"]) !== group_no) return null;
        const refused = row?.["refused"] as [number, string, string][];
        return refused.map(([batch, reason, id]) => ({ kind: "refused", batch, reason, id }));
      } catch {
        // Whatever the reason: the caller must not be told anything before the outcome is known.
        await wait(RETRY_MS);
      }
    }
  }

  #enter(state: State): void {
    if (this.#state.kind !== "closed") this.#state = state;
  }

  /** The process is stopping: a group that is in doubt is soon given up. */
  prepareToStop(): void {
    this.#client.prepareToStop();
    setTimeout(() => this.#enter({ kind: "closed" }), LAST_SILENCE_MS).unref();
  }

  async close(): Promise<void> {
    this.#enter({ kind: "closed" });
    await this.#client.end(2);
  }
}

/** The first refusal of a batch counts, except that `fenced` takes precedence. */
function outcomesFrom(rows: Row[], count: number): { outcome: CommitOutcome; feedback: WriteFeedback }[] {
  const refused = new Map<number, CommitOutcome>();
  const feedback = { numbers: new Map<string, number>(), claimed: new Set<string>(), more: new Set<string>() };
  let isOpen = rows.every(({ kind }) => kind === "refused");
  for (const { kind, batch, reason, id, number } of rows) {
    if (kind === "gate") isOpen ||= Number(batch) === 1;
    else if (kind === "message") feedback.numbers.set(fromText(String(id)), Number(number));
    else if (kind === "claimed") feedback.claimed.add(fromText(String(id)));
    else if (kind === "more") feedback.more.add(fromText(String(id)));
    else if (reason === "fenced" || !refused.has(Number(batch)))
      refused.set(Number(batch), refusal(String(reason), fromText(String(id))));
  }
  // GROUP-1: the writer has another attempt number since, so this statement wrote nothing.
  if (!isOpen) throw Object.assign(new Error("the writer's place was taken"), { code: "57P01" });
  return Array.from({ length: count }, (_, at) => ({ outcome: refused.get(at) ?? { kind: "committed" }, feedback }));
}

const refusal = (reason: string, id: string): CommitOutcome =>
  reason === "fenced" || reason === "queue_not_empty"
    ? { kind: reason, session_id: id }
    : { kind: "exists", table: reason as "conversations", id };
