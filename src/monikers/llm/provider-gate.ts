import { StepError } from "../moniker.ts";
import type { Model } from "./model.ts";

/** Milliseconds for which a model that could not be reached is asked last, where there are others to ask. */
const SUSPECT_MS = 30_000;
/** By how much sessions that wait for the same moment come one after the other: a share of the wait, and at most so many milliseconds. */
const SPREAD = 0.1;
const MOST_SPREAD_MS = 5000;

/**
 * Keeps all sessions of this process from asking a provider before it wants to be asked.
 *
 * GATE-1  Who was told to wait waits for everyone with the same provider, address and key: nobody calls before the time has come.
 * GATE-2  Nobody waits here: the step fails with the time, and its session waits without a step's slot.
 */
export class ProviderGate {
  readonly #closed = new Map<string, number>();
  readonly #suspects = new Map<string, number>();

  /** GATE-2. The failure of a call that is not made, because the provider asked not to be called yet; null where it may be. */
  closedFor(model: Model): StepError | null {
    const left = (this.#closed.get(keyOf(model)) ?? 0) - Date.now();
    if (left <= 0) return null;
    const retry_after_ms = left + Math.min(MOST_SPREAD_MS, left * SPREAD) * Math.random();
    const message = `the provider of ${model.name} asks to wait until ${new Date(Date.now() + left).toISOString()}`;
    return new StepError("rate_limited", message, { retryable: true, outage: true, retry_after_ms });
  }

  /** Learns from a call that failed. */
  failed(model: Model, { outage, retry_after_ms }: StepError): void {
    if (!outage) return;
    this.#suspects.set(model.name, Date.now() + SUSPECT_MS);
    if (retry_after_ms === undefined) return;
    const until = Date.now() + retry_after_ms;
    const key = keyOf(model);
    if (until > (this.#closed.get(key) ?? 0)) this.#closed.set(key, until);
  }

  succeeded(model: Model): void {
    this.#suspects.delete(model.name);
  }

  /** The models in the order in which they are to be asked: those that could not be reached lately come last. */
  inOrder(models: readonly Model[]): readonly Model[] {
    if (this.#suspects.size === 0 || models.length === 1) return models;
    const isSuspect = ({ name }: Model): boolean => (this.#suspects.get(name) ?? 0) > Date.now();
    return [...models.filter((model) => !isSuspect(model)), ...models.filter(isSuspect)];
  }
}

const keyOf = ({ provider, base_url = "", key = "" }: Model): string => JSON.stringify([provider, base_url, key]);
