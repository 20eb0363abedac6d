import { setTimeout as wait } from "node:timers/promises";

/** Milliseconds after which a test gives up waiting, while it still has time to close what it opened. */
export const PATIENCE_MS = 120_000;

/** The promise's value, or an error that says what did not happen in time. */
export async function within<Value>(ms: number, promise: Promise<Value>, what: () => string): Promise<Value> {
  const leaving = new AbortController();
  const late = wait(ms, undefined, { signal: leaving.signal }).then(() => {
    throw new Error(`${what()} (waited ${ms} ms)`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    leaving.abort();
  }
}
