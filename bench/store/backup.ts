import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Batch, Store } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { randomText, seededRandom, summarize } from "../stats.ts";
import type { BackupAnswer } from "./backup-process.ts";
import { drive } from "./drive.ts";
import { runInFreshProcess } from "./fresh-process.ts";
import { commitOrThrow, createSessions, type LoadSession, newLoadSession, nextCommit } from "./load.ts";

const SESSIONS = 100;
const PER_SECOND = 1000;
const LARGE = 20_000;
const ROUNDS = 6;
const SECONDS = 5;

/** A store of 1 GB that is backed up while steps are committed, compared with the same steps before each backup. */
export async function measureBackup({ folder: parent, quick }: BenchContext): Promise<Figure[]> {
  const folder = join(parent, "backup");
  const store = await openEmbeddedStore({ folder });
  const loads = Array.from({ length: SESSIONS }, newLoadSession);
  await createSessions(store, loads);
  await drive(store, loads, { commits: quick ? 5_000 : 24_000, limit_seconds: 600, next: nextLarge() });
  await store.checkpoint();
  const alone: number[] = [];
  const beside: number[] = [];
  let copied: BackupAnswer | undefined;
  let staging_ms = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(...(await paced(store, loads, wait(SECONDS * 1000))));
    const begun = performance.now();
    const backup = store.stageBackup().then((staged) => {
      staging_ms = performance.now() - begun;
      return runInFreshProcess<BackupAnswer>("backup-process.ts", [staged, join(parent, `copy-${round}`)], "by itself");
    });
    beside.push(...(await paced(store, loads, backup)));
    copied = await backup;
    await store.removeStagedBackup();
  }
  await store.close();
  const [without, during] = [summarize(alone), summarize(beside)];
  const figure = (name: string, measured: number, unit: string): Figure => ({
    figure: name,
    measured,
    unit,
    bar: null,
  });
  return [
    figure("backed up", (copied?.bytes ?? 0) / 1e6, "MB"),
    figure("staged in", staging_ms, "ms"),
    figure("copied in", (copied?.ms ?? 0) / 1000, "s"),
    figure(`commits at ${PER_SECOND} steps a second, p99 alone`, without.p99, "ms"),
    figure(`commits at ${PER_SECOND} steps a second, p99 during a backup`, during.p99, "ms"),
    { ...figure("p99 during a backup, times that alone", during.p99 / without.p99, "x"), bar: atMost(2) },
  ];
}

/**
 * Commits steps at a fixed rate, however fast the store is, until the time is over. Resolves with the duration of each commit.
 */
async function paced(store: Store, loads: readonly LoadSession[], over: Promise<unknown>): Promise<number[]> {
  const ended = new AbortController();
  void over.finally(() => ended.abort()).catch(() => {});
  const latencies: number[] = [];
  const free = [...loads];
  const begun = performance.now();
  for (let started = 0; !ended.signal.aborted; ) {
    const due = ((performance.now() - begun) / 1000) * PER_SECOND;
    for (; started < due && free.length > 0; started += 1) {
      const load = free.shift() as LoadSession;
      const sent = performance.now();
      void commitOrThrow(store, nextCommit(load)).then(() => {
        latencies.push(performance.now() - sent);
        free.push(load);
      });
    }
    await wait(1);
  }
  while (free.length < loads.length) await wait(1);
  return latencies;
}

/** A commit with a long text, to make the store large. */
function nextLarge(): (load: LoadSession) => Batch {
  const random = seededRandom(2);
  const texts = Array.from({ length: 16 }, () => randomText(random, LARGE));
  let at = 0;
  return (load) => {
    const batch = nextCommit(load);
    at += 1;
    const text = `${texts[at % texts.length]}${at}`;
    return { ...batch, steps: (batch.steps ?? []).map((step) => ({ ...step, text })) };
  };
}
