import { Emitter } from "../../concurrency/emitter.ts";
import { hears, newDelivery, type StoredDelivery, type StoredWebhook } from "../../domain/webhook.ts";
import { eventOfPlan, type SessionPlan } from "../owned-sessions.ts";
import type { ClaimedDelivery, DeliveryClaim, Page, WebhookStore } from "../store.ts";
import type { Journal, RowWriter } from "./journal.ts";
import { type EmbeddedTables, pack } from "./tables.ts";
import type { ThreadChannel } from "./thread-channel.ts";

const NONE: readonly StoredDelivery[] = [];
const PAGE = 500;

/**
 * Webhooks of the embedded store. All are cached in memory, so that a commit without events costs nothing: nobody else writes
 * the folder. Claims are in memory too, and end with the process (HOOKS-2).
 */
export class EmbeddedWebhooks implements WebhookStore {
  readonly due = new Emitter();
  readonly #channel: ThreadChannel;
  readonly #webhooks = new Map<string, StoredWebhook>();
  readonly #claimed = new Set<string>();

  constructor(channel: ThreadChannel) {
    this.#channel = channel;
  }

  async load(): Promise<void> {
    for (let offset = 0; ; offset += PAGE) {
      const page = await this.list({ limit: PAGE, offset });
      for (const webhook of page) this.#webhooks.set(webhook.webhook_id, webhook);
      if (page.length < PAGE) return;
    }
  }

  /** HOOKS-1: the deliveries to write with these sessions. */
  deliveriesOf(plans: readonly SessionPlan[]): readonly StoredDelivery[] {
    if (this.#webhooks.size === 0) return NONE;
    return plans.flatMap((plan) => {
      const { session } = plan;
      const event = eventOfPlan(plan);
      if (event === null) return [];
      const subscribers = [...this.#webhooks.values()].filter((webhook) => hears(webhook, event, session));
      return subscribers.map(({ webhook_id }) => newDelivery(webhook_id, event, session));
    });
  }

  async put(webhook: StoredWebhook): Promise<StoredWebhook> {
    return this.#cache(await this.#channel.call("webhooks.put", webhook));
  }

  async replaceSecret(
    webhook_id: string,
    change: { secret: string; former_until: string },
  ): Promise<StoredWebhook | null> {
    const changed = await this.#channel.call("webhooks.replaceSecret", webhook_id, change);
    return changed && this.#cache(changed);
  }

  async get(webhook_id: string): Promise<StoredWebhook | null> {
    return this.#webhooks.get(webhook_id) ?? null;
  }

  list(page: Page): Promise<StoredWebhook[]> {
    return this.#channel.call("webhooks.list", page);
  }

  async remove(webhook_id: string): Promise<boolean> {
    const isRemoved = await this.#channel.call("webhooks.remove", webhook_id);
    this.#webhooks.delete(webhook_id);
    return isRemoved;
  }

  listDeliveries(filter: { webhook_id: string; after?: string; limit: number }): Promise<StoredDelivery[]> {
    return this.#channel.call("webhooks.listDeliveries", filter);
  }

  getDelivery(delivery_id: string): Promise<StoredDelivery | null> {
    return this.#channel.call("webhooks.getDelivery", delivery_id);
  }

  async claim({ now, most, busy }: DeliveryClaim): Promise<ClaimedDelivery[]> {
    const claimed: ClaimedDelivery[] = [];
    for (const webhook of this.#webhooks.values()) {
      const limit = most - (busy.get(webhook.webhook_id) ?? 0);
      if (limit <= 0) continue;
      const inProgress = [...this.#claimed];
      for (const delivery of await this.#channel.call("webhooks.due", webhook.webhook_id, now, limit, inProgress)) {
        // Another claim may have been faster during the read.
        if (this.#claimed.has(delivery.delivery_id)) continue;
        this.#claimed.add(delivery.delivery_id);
        claimed.push({ delivery, webhook });
      }
    }
    return claimed;
  }

  async settle(delivery: StoredDelivery): Promise<void> {
    try {
      await this.#channel.call("webhooks.settle", delivery);
    } finally {
      this.#claimed.delete(delivery.delivery_id);
    }
  }

  async sendAgain(delivery_id: string, change: { now: string; retry_until: string }): Promise<StoredDelivery | null> {
    const delivery = await this.#channel.call("webhooks.sendAgain", delivery_id, change);
    if (delivery) this.due.emit();
    return delivery;
  }

  removeEnded(before: string): Promise<number> {
    return this.#channel.call("webhooks.removeEnded", before);
  }

  async restore(rows: { webhooks: StoredWebhook[]; deliveries: StoredDelivery[] }): Promise<void> {
    await this.#channel.call("webhooks.restore", rows);
    for (const webhook of rows.webhooks) this.#cache(webhook);
  }

  onDue(listener: () => void): () => void {
    return this.due.listen(listener);
  }

  #cache(webhook: StoredWebhook): StoredWebhook {
    this.#webhooks.set(webhook.webhook_id, webhook);
    return webhook;
  }
}

/** Ended deliveries removed in one transaction. */
const REMOVED_AT_ONCE = 1000;

/** Webhooks and deliveries in the journal. Lives in the journal's thread; each method is one transaction, or a read. */
export class WebhookRows {
  readonly #journal: Journal;
  readonly #tables: EmbeddedTables;

  constructor(journal: Journal, tables: EmbeddedTables) {
    this.#journal = journal;
    this.#tables = tables;
  }

  put(webhook: StoredWebhook): StoredWebhook {
    const before = this.get(webhook.webhook_id);
    const { url, events, agent_id, updated_at } = webhook;
    const row = before ? { ...before, url, events, agent_id, updated_at } : webhook;
    this.#change((rows) => rows.put("webhooks", pack(this.#tables, "webhooks", row)));
    return row;
  }

  replaceSecret(
    webhook_id: string,
    { secret, former_until }: { secret: string; former_until: string },
  ): StoredWebhook | null {
    const before = this.get(webhook_id);
    if (!before) return null;
    const row = { ...before, secret, former_secret: before.secret, former_secret_until: former_until };
    this.#change((rows) => rows.put("webhooks", pack(this.#tables, "webhooks", row)));
    return row;
  }

  get(webhook_id: string): StoredWebhook | null {
    return this.#webhooks("WHERE webhook_id = ?", webhook_id)[0] ?? null;
  }

  list({ limit, offset }: Page): StoredWebhook[] {
    return this.#webhooks("ORDER BY webhook_id LIMIT ? OFFSET ?", limit, offset);
  }

  remove(webhook_id: string): boolean {
    if (!this.get(webhook_id)) return false;
    const deliveries = this.#journal.query(
      "SELECT delivery_id FROM webhook_deliveries WHERE webhook_id = ?",
      webhook_id,
    );
    this.#change((rows) => {
      rows.remove("webhooks", webhook_id);
      for (const [id] of deliveries) rows.remove("webhook_deliveries", id as string);
    });
    return true;
  }

  listDeliveries({
    webhook_id,
    after,
    limit,
  }: {
    webhook_id: string;
    after?: string;
    limit: number;
  }): StoredDelivery[] {
    const before = "arrival < coalesce((SELECT rowid FROM packed_webhook_deliveries WHERE delivery_id = ?), 0)";
    return after === undefined
      ? this.#deliveries("WHERE webhook_id = ? ORDER BY arrival DESC LIMIT ?", webhook_id, limit)
      : this.#deliveries(`WHERE webhook_id = ? AND ${before} ORDER BY arrival DESC LIMIT ?`, webhook_id, after, limit);
  }

  getDelivery(delivery_id: string): StoredDelivery | null {
    return this.#deliveries("WHERE delivery_id = ?", delivery_id)[0] ?? null;
  }

  /** HOOKS-3. One webhook's deliveries, longest due first, without claimed ones. */
  due(webhook_id: string, now: string, limit: number, claimed: readonly string[]): StoredDelivery[] {
    return this.#deliveries(
      `WHERE webhook_id = ?1 AND status = 'pending' AND next_attempt_at <= ?2
         AND delivery_id NOT IN (SELECT value FROM json_each(?3))
         AND NOT EXISTS (SELECT 1 FROM packed_webhook_deliveries AS earlier WHERE earlier.webhook_id = ?1 AND earlier.status = 'pending'
           AND earlier.session_id = webhook_deliveries.session_id AND earlier.rowid < arrival)
       ORDER BY next_attempt_at, arrival LIMIT ?4`,
      webhook_id,
      now,
      JSON.stringify(claimed),
      limit,
    );
  }

  settle(delivery: StoredDelivery): void {
    // HOOKS-4
    if (this.getDelivery(delivery.delivery_id)?.status !== "pending") return;
    this.#change((rows) => this.#putDelivery(rows, delivery));
  }

  sendAgain(delivery_id: string, { now, retry_until }: { now: string; retry_until: string }): StoredDelivery | null {
    const before = this.getDelivery(delivery_id);
    if (!before) return null;
    const row = { ...before, status: "pending" as const, next_attempt_at: now, retry_until, ended_at: null };
    this.#change((rows) => this.#putDelivery(rows, row));
    return row;
  }

  removeEnded(before: string): number {
    const ended = this.#journal.query(
      `SELECT delivery_id FROM webhook_deliveries WHERE status <> 'pending' AND ended_at < ? LIMIT ${REMOVED_AT_ONCE}`,
      before,
    );
    if (ended.length > 0)
      this.#change((rows) => {
        for (const [id] of ended) rows.remove("webhook_deliveries", id as string);
      });
    return ended.length;
  }

  restore({ webhooks, deliveries }: { webhooks: StoredWebhook[]; deliveries: StoredDelivery[] }): void {
    this.#change((rows) => {
      for (const webhook of webhooks) rows.put("webhooks", pack(this.#tables, "webhooks", webhook));
      for (const delivery of deliveries) this.#putDelivery(rows, delivery);
    });
  }

  #putDelivery(rows: RowWriter, delivery: StoredDelivery): void {
    rows.put("webhook_deliveries", pack(this.#tables, "webhook_deliveries", delivery));
  }

  #change(work: (rows: RowWriter) => void): void {
    this.#journal.changeRows(work);
  }

  #webhooks(clause: string, ...values: (string | number)[]): StoredWebhook[] {
    const rows = this.#journal.snapshots("webhooks", clause, ...values);
    return rows.map((row) => this.#tables.toPort("webhooks", row));
  }

  #deliveries(clause: string, ...values: (string | number)[]): StoredDelivery[] {
    const rows = this.#journal.snapshots("webhook_deliveries", clause, ...values);
    return rows.map((row) => this.#tables.toPort("webhook_deliveries", row));
  }
}
