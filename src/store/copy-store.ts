import { createHash } from "node:crypto";
import { EverstepError } from "../domain/errors.ts";
import { isObject } from "../domain/json.ts";
import { isLive, type Session } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { StoredDelivery } from "../domain/webhook.ts";
import { unreachable } from "./history-pages.ts";
import type { Batch, OwnedSession, Page, Store, WebhookStore } from "./store.ts";

/** A table's number of rows, and a checksum over them that does not depend on their order. */
type TableSum = { rows: number; checksum: string };
export type StoreSums = Record<CopiedTable, TableSum>;
type CopiedTable =
  | "sessions"
  | "steps"
  | "actions"
  | "conversations"
  | "participants"
  | "messages"
  | "cursors"
  | "agent_configs"
  | "webhooks"
  | "deliveries";

/** Which sessions and conversations are copied, with everything that belongs to them. */
export type Choice = { session: (session: Session) => boolean; conversation: (conversation_id: string) => boolean };
const EVERYTHING: Choice = { session: () => true, conversation: () => true };

const PAGE = 500;
const WORKER = "copy";
/** Characters of steps in one commit. */
const CHUNK_CHARACTERS = 2_000_000;

/** Copies everything, or a selection, into an empty store, and returns what was copied. */
export async function copyStore(from: Store, to: Store, choice: Choice = EVERYTHING): Promise<StoreSums> {
  await requireEmpty(to);
  await requireWholeHistory(from);
  const sums = new Sums();
  await visit(from, choice, {
    ...sums.visitor,
    async session(session, steps) {
      await writeSession(to, session, steps, (step) => sums.add("steps", step));
      sums.add("sessions", session);
    },
    async rows(batch) {
      sums.addBatch(batch);
      const outcome = await to.commit(batch);
      if (outcome.kind !== "committed") throw new Error(`a copied row was answered ${JSON.stringify(outcome)}`);
    },
    async webhooks(rows) {
      sums.addWebhooks(rows);
      await to.webhooks.restore(rows);
    },
  });
  await to.releaseSessions({ worker: WORKER });
  return sums.all;
}

/** What a store holds. */
export async function sumStore(store: Store, choice: Choice = EVERYTHING): Promise<StoreSums> {
  const sums = new Sums();
  await visit(store, choice, sums.visitor);
  return sums.all;
}

type Visitor = {
  session(session: Session, steps: AsyncIterable<Step>): Promise<void>;
  rows(batch: Batch): Promise<void>;
  webhooks(rows: WebhookRows): Promise<void>;
};
type WebhookRows = Parameters<WebhookStore["restore"]>[0];

/** Every row once, parents before their forks, messages in their order. */
async function visit(store: Store, choice: Choice, visitor: Visitor): Promise<void> {
  const kept = new Set<string>();
  const bound: { session_id: string; conversation_id: string }[] = [];
  const ids: string[] = [];
  for await (const { session_id } of everySession(store)) ids.push(session_id);
  ids.reverse();
  for (const session_id of ids) {
    const session = await store.getSession(session_id);
    if (!session || !choice.session(session)) continue;
    kept.add(session_id);
    if (session.conversation_id !== null) bound.push({ session_id, conversation_id: session.conversation_id });
    await visitor.session(session, ownSteps(store, session));
  }
  await eachPage(
    (page) => store.listActions(page),
    (actions) =>
      visitor.rows({ actions: actions.filter(({ session_id }) => choice === EVERYTHING || kept.has(session_id)) }),
  );
  const conversations = await allOf(
    (page) => store.listConversations(page),
    (row) => row,
  );
  for (const conversation of conversations.toReversed()) {
    const { conversation_id } = conversation;
    if (!choice.conversation(conversation_id)) continue;
    const participants = await store.listParticipants(conversation_id);
    await visitor.rows({ conversations: [{ kind: "create", conversation }], participants });
    await eachPage(
      (page) => store.listMessages({ conversation_id, ...page }),
      (messages) => visitor.rows({ messages }),
    );
  }
  for (const pair of bound) {
    const cursor = await store.getCursor(pair);
    if (cursor) await visitor.rows({ cursors: [cursor] });
  }
  await eachPage(
    (page) => store.listAgentConfigs(page),
    (agent_configs) => visitor.rows({ agent_configs }),
  );
  await visitWebhooks(store, choice, kept, visitor);
}

/** Copied last, so that copied sessions make no events; deliveries in the order of their creation. */
async function visitWebhooks(store: Store, choice: Choice, kept: ReadonlySet<string>, visitor: Visitor): Promise<void> {
  const webhooks = await allOf(
    (page) => store.webhooks.list(page),
    (row) => row,
  );
  if (webhooks.length > 0) await visitor.webhooks({ webhooks, deliveries: [] });
  for (const { webhook_id } of webhooks) {
    const newestFirst: StoredDelivery[] = [];
    for (let page: StoredDelivery[] = [], after: string | undefined; ; after = page.at(-1)?.delivery_id) {
      page = await store.webhooks.listDeliveries({ webhook_id, limit: PAGE, ...(after !== undefined && { after }) });
      newestFirst.push(...page.filter(({ session_id }) => choice === EVERYTHING || kept.has(session_id)));
      if (page.length < PAGE) break;
    }
    for (let at = newestFirst.length; at > 0; at -= PAGE)
      await visitor.webhooks({ webhooks: [], deliveries: newestFirst.slice(Math.max(0, at - PAGE), at).toReversed() });
  }
}

/** Newest first. */
export async function* everySession(store: Pick<Store, "listSessions">): AsyncGenerator<Session> {
  for (let last: Session | undefined; ; ) {
    const after = last && { session_id: last.session_id, at: last.created_at };
    const page = await store.listSessions({ limit: PAGE, offset: 0, ...(after && { after }) });
    yield* page;
    if (page.length < PAGE) return;
    last = page.at(-1);
  }
}

/** A fork's own steps, without its parent's. */
async function* ownSteps(store: Store, { session_id, parent_iteration }: Session): AsyncGenerator<Step> {
  const min_iteration = (parent_iteration ?? -1) + 1;
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.listSteps({ session_id, min_iteration, limit: PAGE, offset });
    yield* page.filter((step) => step.session_id === session_id);
    if (page.length < PAGE) return;
  }
}

/** Creates a session as it began, then commits its steps up to where it stands. */
async function writeSession(
  to: Store,
  session: Session,
  steps: AsyncIterable<Step>,
  seen: (step: Step) => void,
): Promise<void> {
  let owned: OwnedSession | null = null;
  let chunk: Step[] = [];
  let characters = 0;
  const write = async (row: Session): Promise<void> => {
    const kind = owned
      ? ({ kind: "update", session: row, owner: owned.owner } as const)
      : ({ kind: "create", session: row, worker: WORKER } as const);
    const outcome = await to.commit({ sessions: [kind], ...(chunk.length > 0 ? { steps: chunk } : {}) });
    if (outcome.kind !== "committed")
      throw new Error(`session ${row.session_id} was answered ${JSON.stringify(outcome)}`);
    const revision: number = owned ? owned.owner.revision + 1 : 0;
    owned = { session: row, owner: { worker: WORKER, epoch: 1, revision }, after_crash: false };
    chunk = [];
    characters = 0;
  };
  let iteration = session.parent_iteration ?? -1;
  for await (const step of steps) {
    seen(step);
    chunk.push(step);
    if (step.status === "ok") iteration = step.iteration;
    characters += JSON.stringify(step.state).length + (step.text?.length ?? 0) + 500;
    if (characters > CHUNK_CHARACTERS) await write({ ...session, status: "running", iteration });
  }
  await write(session);
  if (isLive(session.status)) await to.releaseSessions({ worker: WORKER, session_ids: [session.session_id] });
}

/** A session is led over its steps, so all of them must be there. */
async function requireWholeHistory(store: Store): Promise<void> {
  const dropped = (await store.volumes.list()).filter(({ state }) => state === "dropped");
  if (dropped.length === 0) return;
  throw unreachable(
    `the history of ${dropped.length} dropped volumes cannot be copied`,
    "make a backup instead: everstep backup, pg_dump",
  );
}

async function requireEmpty(store: Store): Promise<void> {
  const first = { limit: 1, offset: 0 };
  const firstRows = await Promise.all([
    store.listSessions(first),
    store.listActions(first),
    store.listConversations(first),
    store.listAgentConfigs(first),
    store.webhooks.list(first),
  ]);
  if (firstRows.every((rows) => rows.length === 0)) return;
  throw new EverstepError("store_foreign", "the store to copy into holds something already", "name an empty one");
}

async function eachPage<Row>(
  read: (page: Page) => Promise<Row[]>,
  take: (rows: Row[]) => Promise<void>,
): Promise<void> {
  for (let offset = 0; ; offset += PAGE) {
    const rows = await read({ limit: PAGE, offset });
    if (rows.length > 0) await take(rows);
    if (rows.length < PAGE) return;
  }
}

async function allOf<Row, Kept>(read: (page: Page) => Promise<Row[]>, keep: (row: Row) => Kept): Promise<Kept[]> {
  const all: Kept[] = [];
  await eachPage(read, async (rows) => void all.push(...rows.map(keep)));
  return all;
}

class Sums {
  readonly #rows = new Map<CopiedTable, number>();
  readonly #totals = new Map<CopiedTable, bigint>();

  add(table: CopiedTable, row: object): void {
    this.#rows.set(table, (this.#rows.get(table) ?? 0) + 1);
    const digest = createHash("sha256").update(canonicalJson(row)).digest().readBigUInt64BE(0);
    this.#totals.set(table, BigInt.asUintN(64, (this.#totals.get(table) ?? 0n) + digest));
  }

  addBatch({ actions, conversations, participants, messages, cursors, agent_configs }: Batch): void {
    const tables = { actions, participants, messages, cursors, agent_configs };
    for (const [table, rows] of Object.entries(tables))
      for (const row of rows ?? []) this.add(table as CopiedTable, row);
    for (const { conversation } of conversations ?? []) this.add("conversations", conversation);
  }

  addWebhooks({ webhooks, deliveries }: WebhookRows): void {
    for (const webhook of webhooks) this.add("webhooks", webhook);
    for (const delivery of deliveries) this.add("deliveries", delivery);
  }

  readonly visitor: Visitor = {
    session: async (session, steps) => {
      this.add("sessions", session);
      for await (const step of steps) this.add("steps", step);
    },
    rows: async (batch) => this.addBatch(batch),
    webhooks: async (rows) => this.addWebhooks(rows),
  };

  get all(): StoreSums {
    const tables: CopiedTable[] = [
      "sessions",
      "steps",
      "actions",
      "conversations",
      "participants",
      "messages",
      "cursors",
      "agent_configs",
      "webhooks",
      "deliveries",
    ];
    const sums = tables.map((table) => [
      table,
      { rows: this.#rows.get(table) ?? 0, checksum: (this.#totals.get(table) ?? 0n).toString(16).padStart(16, "0") },
    ]);
    return Object.fromEntries(sums) as StoreSums;
  }
}

/** JSON text with sorted keys: engines may store documents with their keys in another order. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) =>
    isObject(field) ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1))) : field,
  );
