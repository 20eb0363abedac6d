import { setTimeout as wait } from "node:timers/promises";
import type { Store } from "../../src/store/store.ts";

/** Waits until each of the workers has its share of the sessions. */
export async function untilShared(store: Store, workers: number, sessions: number): Promise<void> {
  for (;;) {
    const all = ((await store.listWorkers?.()) ?? []).filter(({ takes_sessions }) => takes_sessions);
    if (all.length === workers && all.every(({ owned_sessions }) => owned_sessions >= sessions / workers / 2)) return;
    await wait(100);
  }
}
