import type { StoredDelivery, StoredWebhook } from "../domain/webhook.ts";
import type { Page } from "./store.ts";

/** A delivery that this process is to attempt, and the webhook as it was then. */
export type ClaimedDelivery = { delivery: StoredDelivery; webhook: StoredWebhook };

/**
 * Webhooks and what is on its way to them. What every engine promises:
 *
 * HOOKS-1  A delivery is written by the very commit that makes the event (`eventOf`), for each webhook that was there when the
 *     commit began: it cannot be lost in between, and a commit that came to nothing leaves none.
 * HOOKS-2  A delivery is claimed by one process at a time. Claims die with the process.
 * HOOKS-3  A later delivery of a session to the same webhook is not handed out while an earlier one is pending.
 * HOOKS-4  What removes or settles a delivery does so once: one whose webhook was removed meanwhile stays removed.
 *
 * What is answered is durable, but for claims and the ends of attempts, which a crash may repeat.
 */
export interface WebhookStore {
  /**
   * Adds the webhook, or changes address, events and agent of the one that is there, which keeps its secrets and its time of
   * creation. Answers what is stored then.
   */
  put(webhook: StoredWebhook): Promise<StoredWebhook>;
  /** Gives it another secret; the one that it had signs as well until that time. Null where it is unknown. */
  replaceSecret(webhook_id: string, change: { secret: string; former_until: string }): Promise<StoredWebhook | null>;
  get(webhook_id: string): Promise<StoredWebhook | null>;
  /** By id. */
  list(page: Page): Promise<StoredWebhook[]>;
  /** With its deliveries. False where it is unknown. */
  remove(webhook_id: string): Promise<boolean>;

  /** Newest first; only those before `after` where it is given. */
  listDeliveries(filter: { webhook_id: string; after?: string; limit: number }): Promise<StoredDelivery[]>;
  getDelivery(delivery_id: string): Promise<StoredDelivery | null>;

  /** Those that are due, the longest due first, up to `most` for each webhook, less what `busy` says is under way for it. */
  claim(claim: { now: string; most: number; busy: ReadonlyMap<string, number> }): Promise<ClaimedDelivery[]>;
  /** Writes how an attempt ended. Whatever becomes of it, the claim is over. */
  settle(delivery: StoredDelivery): Promise<void>;
  /** Makes a delivery due, whatever became of it. Null where it is unknown. */
  sendAgain(delivery_id: string, change: { now: string; retry_until: string }): Promise<StoredDelivery | null>;
  /** Removes what was delivered or given up before the time. Answers how many. */
  removeEnded(before: string): Promise<number>;
  /** Adds rows as they are: for a store that takes over another's. */
  restore(rows: { webhooks: StoredWebhook[]; deliveries: StoredDelivery[] }): Promise<void>;

  /** Called when `claim` may have something new. Returns the way to stop it. */
  onDue(listener: () => void): () => void;
}
