import { now } from "../domain/ids.ts";
import { payloadOf, type StoredDelivery, type StoredWebhook } from "../domain/webhook.ts";
import { RequestSigner } from "../signing/request-signer.ts";
import type { ClaimedDelivery, WebhookStore } from "../store/store.ts";
import type { DeliveryAddresses } from "./delivery-addresses.ts";
import { type PostOutcome, postDelivery } from "./post-delivery.ts";

/** How an attempt ended; `failed` is retried. */
export type AttemptOutcome = "delivered" | "failed" | "given_up";

export type DelivererOptions = {
  addresses: DeliveryAddresses;
  /** Called after each attempt. */
  onAttempt?: (outcome: AttemptOutcome) => void;
  /** Called if the store does not answer. */
  onError?: (error: unknown) => void;
  tuning?: Partial<DelivererTuning>;
};

export type DelivererTuning = {
  /** Time limit of an attempt, in milliseconds. Default 15,000. */
  timeout_ms: number;
  /** Delay before the second attempt, doubled for each further one, in milliseconds. Default 1,000. */
  first_backoff_ms: number;
  /** The longest delay between two attempts, in milliseconds. Default one hour. */
  longest_backoff_ms: number;
  /**
   * How often to poll for deliveries that no notification announced, such as those of other processes or from before a restart,
   * in milliseconds. Default 5,000.
   */
  poll_ms: number;
  /** Finished deliveries are removed after this many milliseconds. Default seven days. */
  keep_ms: number;
};
const HOUR_MS = 3_600_000;
const TUNING: DelivererTuning = {
  timeout_ms: 15_000,
  first_backoff_ms: 1000,
  longest_backoff_ms: HOUR_MS,
  poll_ms: 5000,
  keep_ms: 7 * 24 * HOUR_MS,
};

/** The most attempts in progress per webhook, so that a slow one does not delay the others. */
const MOST_PER_WEBHOOK = 4;
/** Random variation of delays, so that a receiver that comes back is not flooded. */
const JITTER = 0.2;
/** The receiver wants no more deliveries. */
const GONE = 410;
/** How long attempts may take to finish when the process stops, in milliseconds. */
const STOP_GRACE_MS = 3000;

/**
 * Sends deliveries. It is idle or polls for due deliveries; each attempt runs on its own from claim to settlement.
 *
 * DELIVERER-1  An attempt is recorded after it ended. A crash in between repeats it, with the same id and body.
 * DELIVERER-2  A delivery is retried with backoff until the receiver accepts it, and abandoned if it fails after its
 *              `retry_until`. Each is tried at least once, however long it waited behind an earlier one.
 */
export class Deliverer {
  readonly #store: WebhookStore;
  readonly #options: DelivererOptions;
  readonly #tuning: DelivererTuning;
  readonly #stopping = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  /** The number of attempts in progress per webhook. */
  readonly #busy = new Map<string, number>();
  #unlisten = () => {};
  #timer: NodeJS.Timeout | undefined;
  #cleaner: NodeJS.Timeout | undefined;
  #polling: Promise<void> | null = null;
  #isNotified = false;
  #isStopped = false;

  constructor(store: WebhookStore, options: DelivererOptions) {
    this.#store = store;
    this.#options = options;
    this.#tuning = { ...TUNING, ...options.tuning };
  }

  start(): void {
    this.#unlisten = this.#store.onDue(() => this.#poll());
    this.#cleaner = setInterval(() => void this.#clean(), HOUR_MS).unref();
    this.#poll();
    void this.#clean();
  }

  /** Claims no more, lets attempts finish for a moment, then aborts them; the next process retries them. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unlisten();
    clearTimeout(this.#timer);
    clearInterval(this.#cleaner);
    const grace = setTimeout(() => this.#stopping.abort(), STOP_GRACE_MS);
    await this.#polling;
    await Promise.all(this.#attempts);
    clearTimeout(grace);
  }

  #poll(): void {
    if (this.#isStopped) return;
    this.#isNotified = true;
    this.#polling ??= this.#claimWhileNotified().finally(() => {
      this.#polling = null;
      if (this.#isNotified) this.#poll();
    });
  }

  async #claimWhileNotified(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#isNotified && !this.#isStopped) {
      this.#isNotified = false;
      try {
        const most = MOST_PER_WEBHOOK;
        for (const claimed of await this.#store.claim({ now: now(), most, busy: this.#busy })) this.#begin(claimed);
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
    this.#pollIn(this.#tuning.poll_ms);
  }

  #pollIn(ms: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#poll(), ms).unref();
  }

  #begin(claimed: ClaimedDelivery): void {
    const { webhook_id } = claimed.webhook;
    this.#busy.set(webhook_id, (this.#busy.get(webhook_id) ?? 0) + 1);
    const attempt = this.#attempt(claimed)
      .catch((error: unknown) => this.#options.onError?.(error))
      .finally(() => {
        this.#attempts.delete(attempt);
        const left = (this.#busy.get(webhook_id) ?? 1) - 1;
        if (left > 0) this.#busy.set(webhook_id, left);
        else this.#busy.delete(webhook_id);
        // Another delivery of its session or webhook may be next.
        this.#poll();
      });
    this.#attempts.add(attempt);
  }

  async #attempt({ delivery, webhook }: ClaimedDelivery): Promise<void> {
    const body = JSON.stringify(payloadOf(delivery));
    const outcome = await postDelivery(
      {
        url: webhook.url,
        body,
        headers: new RequestSigner(secretsOf(webhook)).headers(delivery.delivery_id, body),
        timeout_ms: this.#tuning.timeout_ms,
        signal: this.#stopping.signal,
      },
      this.#options.addresses,
    );
    if (this.#stopping.signal.aborted && outcome.error !== null) return this.#store.settle(delivery);
    const settled = this.#after(delivery, outcome);
    await this.#store.settle(settled); // DELIVERER-1
    this.#options.onAttempt?.(settled.status === "pending" ? "failed" : settled.status);
    if (settled.next_attempt_at !== null) this.#retryAt(Date.parse(settled.next_attempt_at));
  }

  /** Polls no later than that. */
  #retryAt(time: number): void {
    const wait = Math.max(0, time - Date.now());
    if (wait < this.#tuning.poll_ms) setTimeout(() => this.#poll(), wait + 1).unref();
  }

  /** DELIVERER-2. */
  #after(delivery: StoredDelivery, { response_status, error, retry_after_s }: PostOutcome): StoredDelivery {
    const at = Date.now();
    const ended_at = new Date(at).toISOString();
    const tried = {
      ...delivery,
      attempts: delivery.attempts + 1,
      response_status,
      last_error: error,
      last_attempt_at: ended_at,
      next_attempt_at: null,
      ended_at,
    };
    if (error === null) return { ...tried, status: "delivered" };
    if (response_status === GONE || ended_at >= delivery.retry_until) return { ...tried, status: "given_up" };
    const wait = Math.max(this.#backoff(tried.attempts), Math.min((retry_after_s ?? 0) * 1000, HOUR_MS));
    return { ...tried, status: "pending", ended_at: null, next_attempt_at: new Date(at + wait).toISOString() };
  }

  #backoff(attempts: number): number {
    const { first_backoff_ms, longest_backoff_ms } = this.#tuning;
    const wait = Math.min(first_backoff_ms * 2 ** Math.min(attempts - 1, 30), longest_backoff_ms);
    return wait * (1 + JITTER * (2 * Math.random() - 1));
  }

  async #clean(): Promise<void> {
    const before = new Date(Date.now() - this.#tuning.keep_ms).toISOString();
    try {
      while (!this.#isStopped && (await this.#store.removeEnded(before)) > 0);
    } catch (error) {
      this.#options.onError?.(error);
    }
  }
}

/** The newest, and the previous one while it is valid. */
const secretsOf = ({ secret, former_secret, former_secret_until }: StoredWebhook): string[] =>
  former_secret !== null && former_secret_until !== null && Date.parse(former_secret_until) > Date.now()
    ? [secret, former_secret]
    : [secret];
