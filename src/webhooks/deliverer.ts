import { now } from "../domain/ids.ts";
import { payloadOf, type StoredDelivery, type StoredWebhook } from "../domain/webhook.ts";
import { RequestSigner } from "../signing/request-signer.ts";
import type { ClaimedDelivery, WebhookStore } from "../store/store.ts";
import type { DeliveryAddresses } from "./delivery-addresses.ts";
import { type PostOutcome, postDelivery } from "./post-delivery.ts";

/** How an attempt ended: `failed` is tried again. */
export type AttemptOutcome = "delivered" | "failed" | "given_up";

export type DelivererOptions = {
  addresses: DeliveryAddresses;
  /** Told of each attempt that ended. */
  attempted?: (outcome: AttemptOutcome) => void;
  /** Told where the store does not answer. */
  troubled?: (error: unknown) => void;
  tuning?: Partial<DelivererTuning>;
};

export type DelivererTuning = {
  /** Milliseconds that an attempt may take. 15,000 by default. */
  timeout_ms: number;
  /** Milliseconds before the second attempt, doubled for each further one. 1,000 by default. */
  first_backoff_ms: number;
  /** The longest wait between two attempts in milliseconds. An hour by default. */
  longest_backoff_ms: number;
  /** How often it looks for what nobody told of, in milliseconds: what other processes left, what waits since a restart. 5,000 by default. */
  look_ms: number;
  /** Milliseconds after which what was delivered or given up is removed. Seven days by default. */
  keep_ms: number;
};
const HOUR_MS = 3_600_000;
const TUNING: DelivererTuning = {
  timeout_ms: 15_000,
  first_backoff_ms: 1000,
  longest_backoff_ms: HOUR_MS,
  look_ms: 5000,
  keep_ms: 7 * 24 * HOUR_MS,
};

/** Attempts under way for one webhook, so that one that hangs keeps none of the others waiting. */
const MOST_PER_WEBHOOK = 4;
/** By how much a wait differs at random, so that a receiver that comes back is not met by all at once. */
const JITTER = 0.2;
/** The receiver wants no more of it. */
const GONE = 410;
/** Milliseconds that attempts may take to finish when the process stops. */
const STOP_GRACE_MS = 3000;

/**
 * Sends deliveries. It is idle, or looks what is due; each attempt is on its own from the claim to its end in the store.
 *
 * DELIVERER-1  An attempt is written after it ended. A crash in between repeats it, with the same id and the same body.
 * DELIVERER-2  A delivery is tried until the receiver takes it, with growing waits, and given up when it fails after its
 *     `retry_until`: each is tried at least once, however long it waited behind an earlier one.
 */
export class Deliverer {
  readonly #store: WebhookStore;
  readonly #options: DelivererOptions;
  readonly #tuning: DelivererTuning;
  readonly #stopping = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  /** How many attempts are under way for each webhook. */
  readonly #busy = new Map<string, number>();
  #unlisten = () => {};
  #timer: NodeJS.Timeout | undefined;
  #cleaner: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #mustLookAgain = false;
  #isStopped = false;

  constructor(store: WebhookStore, options: DelivererOptions) {
    this.#store = store;
    this.#options = options;
    this.#tuning = { ...TUNING, ...options.tuning };
  }

  start(): void {
    this.#unlisten = this.#store.onDue(() => this.#look());
    this.#cleaner = setInterval(() => void this.#clean(), HOUR_MS).unref();
    this.#look();
    void this.#clean();
  }

  /** Claims no more, lets attempts finish for a moment, then ends them: they are repeated by whoever comes next. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unlisten();
    clearTimeout(this.#timer);
    clearInterval(this.#cleaner);
    const grace = setTimeout(() => this.#stopping.abort(), STOP_GRACE_MS);
    await this.#looking;
    await Promise.all(this.#attempts);
    clearTimeout(grace);
  }

  #look(): void {
    if (this.#isStopped) return;
    this.#mustLookAgain = true;
    this.#looking ??= this.#lookWhileAsked().finally(() => {
      this.#looking = null;
      if (this.#mustLookAgain) this.#look();
    });
  }

  async #lookWhileAsked(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#mustLookAgain && !this.#isStopped) {
      this.#mustLookAgain = false;
      try {
        const most = MOST_PER_WEBHOOK;
        for (const claimed of await this.#store.claim({ now: now(), most, busy: this.#busy })) this.#begin(claimed);
      } catch (error) {
        this.#options.troubled?.(error);
      }
    }
    this.#lookIn(this.#tuning.look_ms);
  }

  #lookIn(ms: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), ms).unref();
  }

  #begin(claimed: ClaimedDelivery): void {
    const { webhook_id } = claimed.webhook;
    this.#busy.set(webhook_id, (this.#busy.get(webhook_id) ?? 0) + 1);
    const attempt = this.#attempt(claimed)
      .catch((error: unknown) => this.#options.troubled?.(error))
      .finally(() => {
        this.#attempts.delete(attempt);
        const left = (this.#busy.get(webhook_id) ?? 1) - 1;
        if (left > 0) this.#busy.set(webhook_id, left);
        else this.#busy.delete(webhook_id);
        // Another of its session, or of its webhook, may be next.
        this.#look();
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
    this.#options.attempted?.(settled.status === "pending" ? "failed" : settled.status);
    if (settled.next_attempt_at !== null) this.#retryAt(Date.parse(settled.next_attempt_at));
  }

  /** The next look is not later than that. */
  #retryAt(time: number): void {
    const wait = Math.max(0, time - Date.now());
    if (wait < this.#tuning.look_ms) setTimeout(() => this.#look(), wait + 1).unref();
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
      this.#options.troubled?.(error);
    }
  }
}

/** The newest, and the one before while it still counts. */
const secretsOf = ({ secret, former_secret, former_secret_until }: StoredWebhook): string[] =>
  former_secret !== null && former_secret_until !== null && Date.parse(former_secret_until) > Date.now()
    ? [secret, former_secret]
    : [secret];
