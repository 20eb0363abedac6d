import { StepError } from "../moniker.ts";
import type { Model } from "./model.ts";

/** For this long, in milliseconds, an unreachable model is tried last if there are others. */
const SUSPECT_MS = 30_000;
/** Spreads sessions that wait for the same moment: by a share of the wait, at most this many milliseconds. */
const SPREAD = 0.1;
const MOST_SPREAD_MS = 5000;

/**
 * Keeps this process's sessions from calling a provider before it allows the next call.
 *
 * GATE-1  A wait that a provider asks for applies to every session with the same provider, address and key.
 * GATE-2  Nobody waits here: the step fails with the retry time, and its session waits without occupying a slot.
 */
export class ProviderGate {
  readonly #closed = new Map<string, number>();
  readonly #suspects = new Map<string, number>();

  /** GATE-2. The error for a call that is not made because the provider asked to wait; null if it may be made. */
  closedFor(model: Model): StepError | null {
    const left = (this.#closed.get(keyOf(model)) ?? 0) - Date.now();
    if (left <= 0) return null;
    const retry_after_ms = left + Math.min(MOST_SPREAD_MS, left * SPREAD) * Math.random();
    const message = `the provider of ${model.name} asks to wait until ${new Date(Date.now() + left).toISOString()}`;
    return new StepError("rate_limited", message, { retryable: true, outage: true, retry_after_ms });
  }

  /** Records a failed call. */
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

  /** The models in the order to try them: recently unreachable ones come last. */
  inOrder(models: readonly Model[]): readonly Model[] {
    if (this.#suspects.size === 0 || models.length === 1) return models;
    const isSuspect = ({ name }: Model): boolean => (this.#suspects.get(name) ?? 0) > Date.now();
    return [...models.filter((model) => !isSuspect(model)), ...models.filter(isSuspect)];
  }
}

const keyOf = ({ provider, base_url = "", key = "" }: Model): string => JSON.stringify([provider, base_url, key]);
