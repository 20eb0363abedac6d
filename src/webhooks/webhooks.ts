import { now } from "../domain/ids.ts";
import { RETRY_FOR_MS, type StoredDelivery, type StoredWebhook, type WebhookEvent } from "../domain/webhook.ts";
import { newSigningSecret } from "../signing/request-signer.ts";
import type { WebhookStore } from "../store/store.ts";
import type { DeliveryAddresses } from "./delivery-addresses.ts";

type WebhookRequest = { url: string; events: readonly WebhookEvent[]; agent_id?: string | undefined };
type PutOutcome =
  | { kind: "created" | "changed"; webhook: StoredWebhook }
  | { kind: "invalid"; path: string; message: string };

/** How long the previous secret still signs. */
const FORMER_SECRET_MS = 24 * 3_600_000;

/** What clients do with webhooks. */
export class Webhooks {
  readonly store: WebhookStore;
  readonly #addresses: DeliveryAddresses;

  constructor(store: WebhookStore, addresses: DeliveryAddresses) {
    this.store = store;
    this.#addresses = addresses;
  }

  async put(webhook_id: string, { url, events, agent_id }: WebhookRequest): Promise<PutOutcome> {
    const problem = this.#problemOf(url);
    if (problem !== null) return { kind: "invalid", path: "url", message: problem };
    const at = now();
    const secret = newSigningSecret();
    const webhook = await this.store.put({
      webhook_id,
      url: new URL(url).href,
      events: [...new Set(events)],
      agent_id: agent_id ?? null,
      secret,
      former_secret: null,
      former_secret_until: null,
      created_at: at,
      updated_at: at,
    });
    // An existing webhook keeps its secret.
    return { kind: webhook.secret === secret ? "created" : "changed", webhook };
  }

  rotateSecret(webhook_id: string): Promise<StoredWebhook | null> {
    return this.store.replaceSecret(webhook_id, {
      secret: newSigningSecret(),
      former_until: new Date(Date.now() + FORMER_SECRET_MS).toISOString(),
    });
  }

  /** Null if the webhook has no such delivery. */
  async sendAgain(webhook_id: string, delivery_id: string): Promise<StoredDelivery | null> {
    const delivery = await this.store.getDelivery(delivery_id);
    if (delivery?.webhook_id !== webhook_id) return null;
    const retry_until = new Date(Date.now() + RETRY_FOR_MS).toISOString();
    return this.store.sendAgain(delivery_id, { now: now(), retry_until });
  }

  #problemOf(text: string): string | null {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol)) return "must be an http:// or https:// address";
    // It would be visible to everybody who may list webhooks.
    if (url.username !== "" || url.password !== "") return "must not contain a user or password";
    return this.#addresses.problemOf(url)?.message ?? null;
  }
}
