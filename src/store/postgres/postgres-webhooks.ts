import { Emitter } from "../../concurrency/emitter.ts";
import { type StoredDelivery, type StoredWebhook } from "../../domain/webhook.ts";
import { eventOfPlan, type SessionPlan } from "../owned-sessions.ts";
import type { WebhookTable } from "../schema.ts";
import type { ClaimedDelivery, DeliveryClaim, Page, WebhookStore } from "../store.ts";
import type { Pool, Row } from "./connections.ts";
import { Values } from "./session-lists.ts";
import { fromArrays, toArrays } from "./single-row-statements.ts";
import { arrayOf, type Tables, toText } from "./tables.ts";

/** Milliseconds after which a claim expires even if its process is alive: far longer than an attempt takes. */
const LEASE_MS = 60_000;
const REMOVED_AT_ONCE = 1000;
/** The pool does not wait for the disk; what people are told is stored must. */
const DURABLE = "set_config('synchronous_commit', 'on', true)";
const isFree = (alias: string): string =>
  `(${alias}.claimed_until is null or ${alias}.claimed_until < now() or ${alias}.claimed_by not in (select node_no from workers))`;
const CHANGED_BY_ATTEMPT = [
  "status",
  "attempts",
  "response_status",
  "last_error",
  "last_attempt_at",
  "next_attempt_at",
  "ended_at",
] as const satisfies (keyof StoredDelivery)[];

/**
 * Webhooks of the shared store. A trigger on `agent_state` (`migrations.sql`) keeps HOOKS-1, a lease that ends with its process keeps
 * HOOKS-2. Every process may deliver: it hears of its own commits at once and polls for the rest.
 */
export class PostgresWebhooks implements WebhookStore {
  readonly due = new Emitter();
  readonly #pool: Pool;
  readonly #tables: Tables;
  readonly #node_no: number;

  constructor(pool: Pool, tables: Tables, node_no: number) {
    this.#pool = pool;
    this.#tables = tables;
    this.#node_no = node_no;
  }

  /** Called after each commit. */
  committed(plans: readonly SessionPlan[]): void {
    if (plans.some((plan) => eventOfPlan(plan) !== null)) this.due.emit();
  }

  async put(webhook: StoredWebhook): Promise<StoredWebhook> {
    const { webhook_id } = webhook;
    // Remains of a webhook of the same id whose removal was cut short do not belong to this one.
    await this.#pool.query(
      "delete from webhook_deliveries where webhook_id = $1 and not exists (select 1 from webhooks where webhook_id = $1)",
      toText(webhook_id),
    );
    const [row] = await this.#insert(
      "webhooks",
      [webhook],
      `on conflict (webhook_id) do update set url = excluded.url, events = excluded.events, agent_id = excluded.agent_id,
         updated_at = excluded.updated_at returning ${this.#tables.selected("webhooks", "r")}, ${DURABLE}`,
    );
    return this.#tables.toRow("webhooks", row as Row);
  }

  async replaceSecret(
    webhook_id: string,
    { secret, former_until }: { secret: string; former_until: string },
  ): Promise<StoredWebhook | null> {
    // If the statement is repeated, the new secret is already there.
    const rows = await this.#pool.query(
      `update webhooks r set secret = $2, former_secret = case when r.secret = $2 then r.former_secret else r.secret end,
         former_secret_until = $3 where r.webhook_id = $1 returning ${this.#tables.selected("webhooks", "r")}, ${DURABLE}`,
      toText(webhook_id),
      secret,
      former_until,
    );
    return rows[0] ? this.#tables.toRow("webhooks", rows[0]) : null;
  }

  async get(webhook_id: string): Promise<StoredWebhook | null> {
    return (await this.#webhooks("where r.webhook_id = $1", toText(webhook_id)))[0] ?? null;
  }

  list({ limit, offset }: Page): Promise<StoredWebhook[]> {
    return this.#webhooks("order by r.webhook_id limit $1 offset $2", limit, offset);
  }

  async remove(webhook_id: string): Promise<boolean> {
    const id = toText(webhook_id);
    const removed = await this.#pool.query(`delete from webhooks where webhook_id = $1 returning ${DURABLE}`, id);
    // Only now, because no commit adds one from here on.
    await this.#pool.query("delete from webhook_deliveries where webhook_id = $1", id);
    return removed.length > 0;
  }

  listDeliveries({ webhook_id, after, limit }: { webhook_id: string; after?: string; limit: number }) {
    const values = new Values();
    const of = `r.webhook_id = ${values.add(toText(webhook_id))}`;
    const place = after === undefined ? "" : ` and r.number < (${NUMBER_OF} ${values.add(toText(after))})`;
    return this.#deliveries(`where ${of}${place} order by r.number desc limit ${values.add(limit)}`, ...values.list);
  }

  async getDelivery(delivery_id: string): Promise<StoredDelivery | null> {
    return (await this.#deliveries("where r.delivery_id = $1", toText(delivery_id)))[0] ?? null;
  }

  /** HOOKS-2, HOOKS-3. */
  async claim({ now, most, busy }: DeliveryClaim): Promise<ClaimedDelivery[]> {
    const rows = await this.#pool.query(
      `with due as materialized (
         select d.delivery_id from webhooks w
           left join unnest($3::text[], $4::integer[]) b (webhook_id, count) on b.webhook_id = w.webhook_id
           cross join lateral (
             select d.delivery_id from webhook_deliveries d
             where d.webhook_id = w.webhook_id and d.status = 'pending' and d.next_attempt_at <= $1::timestamptz and ${isFree("d")}
               and not exists (select 1 from webhook_deliveries e where e.webhook_id = d.webhook_id and e.session_id = d.session_id
                 and e.status = 'pending' and e.number < d.number)
             order by d.next_attempt_at, d.number limit greatest($2::integer - coalesce(b.count, 0), 0)
             for update skip locked) d)
       update webhook_deliveries r set claimed_by = $5, claimed_until = now() + ${LEASE_MS} * interval '1 millisecond'
       from due where r.delivery_id = due.delivery_id returning ${this.#tables.selected("webhook_deliveries", "r")}`,
      now,
      most,
      arrayOf([...busy.keys()].map(toText)),
      arrayOf([...busy.values()]),
      this.#node_no,
    );
    if (rows.length === 0) return [];
    const deliveries = rows.map((row) => this.#tables.toRow("webhook_deliveries", row));
    const ids = [...new Set(deliveries.map(({ webhook_id }) => toText(webhook_id)))];
    const webhooks = await this.#webhooks("where r.webhook_id = any ($1::text[])", arrayOf(ids));
    const byId = new Map(webhooks.map((webhook) => [webhook.webhook_id, webhook]));
    return deliveries.flatMap((delivery) => {
      const webhook = byId.get(delivery.webhook_id);
      return webhook ? [{ delivery, webhook }] : [];
    });
  }

  async settle(delivery: StoredDelivery): Promise<void> {
    const values = this.#tables.encoder("webhook_deliveries", CHANGED_BY_ATTEMPT)(delivery);
    const changes = CHANGED_BY_ATTEMPT.map((name, at) => `${name} = $${at + 2}`).join(", ");
    // HOOKS-4
    await this.#pool.query(
      `update webhook_deliveries set ${changes}, claimed_by = null, claimed_until = null where delivery_id = $1 and status = 'pending'`,
      toText(delivery.delivery_id),
      ...values,
    );
  }

  async sendAgain(
    delivery_id: string,
    { now, retry_until }: { now: string; retry_until: string },
  ): Promise<StoredDelivery | null> {
    const [row] = await this.#pool.query(
      `update webhook_deliveries r set status = 'pending', next_attempt_at = $2, retry_until = $3, ended_at = null
       where r.delivery_id = $1 returning ${this.#tables.selected("webhook_deliveries", "r")}, ${DURABLE}`,
      toText(delivery_id),
      now,
      retry_until,
    );
    if (!row) return null;
    this.due.emit();
    return this.#tables.toRow("webhook_deliveries", row);
  }

  async removeEnded(before: string): Promise<number> {
    const rows = await this.#pool.query(
      `delete from webhook_deliveries where number in (
         select number from webhook_deliveries where ended_at < $1 limit ${REMOVED_AT_ONCE} for update skip locked) returning number`,
      before,
    );
    return rows.length;
  }

  async restore({ webhooks, deliveries }: { webhooks: StoredWebhook[]; deliveries: StoredDelivery[] }): Promise<void> {
    if (webhooks.length > 0) await this.#insert("webhooks", webhooks, `on conflict do nothing returning ${DURABLE}`);
    if (deliveries.length > 0)
      await this.#insert("webhook_deliveries", deliveries, `on conflict (delivery_id) do nothing returning ${DURABLE}`);
  }

  onDue(listener: () => void): () => void {
    return this.due.listen(listener);
  }

  /** In the order of the list. */
  async #insert<Table extends WebhookTable>(
    table: Table,
    rows: readonly (Table extends "webhooks" ? StoredWebhook : StoredDelivery)[],
    rest: string,
  ): Promise<Row[]> {
    const columns = this.#tables.input(table);
    const values = rows.map((row) => this.#tables.toValues(table, row as never));
    const names = this.#tables.names(table).join(", ");
    const text = `insert into ${table} as r (${names}) ${fromArrays(columns, 1)} ${rest}`;
    return this.#pool.query(text, ...toArrays(columns, values));
  }

  async #webhooks(where: string, ...values: (string | number)[]): Promise<StoredWebhook[]> {
    const rows = await this.#pool.query(
      `select ${this.#tables.selected("webhooks", "r")} from webhooks r ${where}`,
      ...values,
    );
    return rows.map((row) => this.#tables.toRow("webhooks", row));
  }

  async #deliveries(where: string, ...values: Values["list"]): Promise<StoredDelivery[]> {
    const columns = this.#tables.selected("webhook_deliveries", "r");
    const rows = await this.#pool.query(`select ${columns} from webhook_deliveries r ${where}`, ...values);
    return rows.map((row) => this.#tables.toRow("webhook_deliveries", row));
  }
}

const NUMBER_OF = "select number from webhook_deliveries where delivery_id =";
