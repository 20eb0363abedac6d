import { Emitter } from "../../concurrency/emitter.ts";
import { eventOf, hears, newDelivery, type StoredDelivery, type StoredWebhook } from "../../domain/webhook.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type { Page } from "../store.ts";
import type { ClaimedDelivery, WebhookStore } from "../webhook-store.ts";
import type { ThreadChannel } from "./thread-channel.ts";

const NONE: readonly StoredDelivery[] = [];
const PAGE = 500;

/**
 * Webhooks of the embedded store. All of them are in memory, so that a commit that concerns none costs nothing: nobody else writes
 * the folder. Claims are in memory too, and so die with the process (HOOKS-2).
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

  /** HOOKS-1: what is to be written with these sessions. */
  deliveriesOf(plans: readonly SessionPlan[]): readonly StoredDelivery[] {
    if (this.#webhooks.size === 0) return NONE;
    return plans.flatMap(({ last, session }) => {
      const event = eventOf(last, session);
      if (event === null) return [];
      const hearing = [...this.#webhooks.values()].filter((webhook) => hears(webhook, event, session));
      return hearing.map(({ webhook_id }) => newDelivery(webhook_id, event, session));
    });
  }

  async put(webhook: StoredWebhook): Promise<StoredWebhook> {
    return this.#keep(await this.#channel.call("webhooks.put", webhook));
  }

  async replaceSecret(
    webhook_id: string,
    change: { secret: string; former_until: string },
  ): Promise<StoredWebhook | null> {
    const changed = await this.#channel.call("webhooks.replaceSecret", webhook_id, change);
    return changed && this.#keep(changed);
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

  async claim({
    now,
    most,
    busy,
  }: {
    now: string;
    most: number;
    busy: ReadonlyMap<string, number>;
  }): Promise<ClaimedDelivery[]> {
    const claimed: ClaimedDelivery[] = [];
    for (const webhook of this.#webhooks.values()) {
      const limit = most - (busy.get(webhook.webhook_id) ?? 0);
      if (limit <= 0) continue;
      const known = [...this.#claimed];
      for (const delivery of await this.#channel.call("webhooks.due", webhook.webhook_id, now, limit, known)) {
        // Another claim may have been faster while this one read.
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
    for (const webhook of rows.webhooks) this.#keep(webhook);
  }

  onDue(listener: () => void): () => void {
    return this.due.listen(listener);
  }

  #keep(webhook: StoredWebhook): StoredWebhook {
    this.#webhooks.set(webhook.webhook_id, webhook);
    return webhook;
  }
}
