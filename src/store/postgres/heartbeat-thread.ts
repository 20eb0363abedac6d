import { enableCompileCache } from "node:module";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { Client, Failure, Row } from "./connections.ts";
import type { HeartbeatOrder, HeartbeatReport } from "./membership.ts";

const { url, node_no, lock, name, lease_ms, turns, compile_cache } = workerData as HeartbeatOrder;
if (compile_cache !== undefined) enableCompileCache(dirname(compile_cache));
// Only now, so that it is taken from the cache.
const { LOCK_TIMEOUT, onSilence, openClient, run, wasRefused } = await import("./connections.ts");

const AGAIN_MS = 50;
/** Milliseconds of silence after which the connection is given up and another is made. */
const SILENCE_MS = 4000;
/** Milliseconds without a turn of the main thread's event loop after which it is reported as blocked. */
const BLOCKED_MS = 1000;

const RENEW = `insert into workers as w (node_no, name, expires_at, blocked_ms)
    values ($1, $2, now() + $3 * interval '1 millisecond', $4)
  on conflict (node_no) do update set renewed_at = now(), expires_at = excluded.expires_at, blocked_ms = excluded.blocked_ms
  returning (xmax <> 0) as was_known`;

const stopping = new AbortController();
let hasJoined = false;
let renewing: Promise<unknown> = Promise.resolve();

const report = (said: HeartbeatReport): void => parentPort?.postMessage(said);

/** How long the main thread has not turned. Time in which this thread stood still too does not count. */
const blockedFor = (() => {
  let lastTurns = -1;
  let since = performance.now();
  return (): number => {
    const now = Atomics.load(turns, 0);
    if (now !== lastTurns) {
      lastTurns = now;
      since = performance.now();
    }
    const blocked_ms = performance.now() - since;
    return blocked_ms > BLOCKED_MS ? Math.round(blocked_ms) : 0;
  };
})();

/** HEARTBEAT-1. Holds the lock and renews the lease until the connection breaks: a new connection does not have the lock. */
async function beatOnOneConnection(client: Client, broken: Promise<never>): Promise<void> {
  await Promise.race([broken, ask(client, "select pg_advisory_lock($1, $2)", lock, node_no)]);
  while (!stopping.signal.aborted) {
    const renewal = ask(client, RENEW, node_no, name, lease_ms, blockedFor());
    renewing = renewal.catch(() => {});
    const [row] = await Promise.race([broken, renewal]);
    if (!hasJoined) report({ kind: "joined" });
    else if (row?.["was_known"] !== true) report({ kind: "taken_for_dead" });
    hasJoined = true;
    await Promise.race([broken, wait(lease_ms / 5)]);
  }
  // HEARTBEAT-2: until the thread is ended the lock says that the process lives.
  await new Promise(() => {});
}

/** Repeats a statement that the server refused, for example because it was cancelled: the connection still has the lock. */
async function ask(client: Client, text: string, ...parameters: (string | number)[]): Promise<Row[]> {
  for (;;) {
    const silence = Promise.withResolvers<never>();
    const stop = onSilence(SILENCE_MS, () =>
      silence.reject(Object.assign(new Error("the server is silent"), { code: "ETIMEDOUT" })),
    );
    try {
      return await Promise.race([run(client, text, parameters), silence.promise]);
    } catch (error) {
      if (!wasRefused(error) || !hasJoined) throw error;
      await wait(AGAIN_MS);
    } finally {
      stop();
    }
  }
}

async function beat(): Promise<void> {
  while (!stopping.signal.aborted) {
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => {});
    const client = openClient(url, {
      max: 1,
      settings: { synchronous_commit: "off", ...LOCK_TIMEOUT },
      onClose: () => broken.reject(Object.assign(new Error("the connection is closed"), { code: "CONNECTION_CLOSED" })),
    });
    try {
      await beatOnOneConnection(client, broken.promise);
    } catch (error) {
      const { message, code, severity } = error as Failure & Error;
      if (!hasJoined) return report({ kind: "failed", error: { message, code, severity } });
      void client.end({ timeout: 0 }).catch(() => {});
      await wait(AGAIN_MS);
    }
  }
}

parentPort?.on("message", () => {
  stopping.abort();
  // A renewal that is under way must not take effect after the process has removed itself from the list.
  void renewing.then(() => report({ kind: "stopped" }));
});

void beat();
