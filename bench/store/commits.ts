import { join } from "node:path";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { BenchContext } from "../bench.ts";
import { atLeast, atMost, type Bar, below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { openBareInsert } from "./bare-insert.ts";
import { type Driven, drive } from "./drive.ts";
import {
  commitOrThrow,
  createSessions,
  type LoadSession,
  newLoadSession,
  nextCommit,
  nextSteeredCommit,
} from "./load.ts";

type Bars = { commits_per_second?: Bar; p99?: Bar; longest_block?: Bar; checkpoints?: Bar };
type Level = { sessions: number; commits: number; quick_commits: number; bars: Bars; is_steered?: boolean };

/** Enough commits that the store archives rows in LanceDB several times: otherwise the figures would be too good. */
const LEVELS: Level[] = [
  { sessions: 1, commits: 10_000, quick_commits: 3_000, bars: {} },
  { sessions: 10, commits: 40_000, quick_commits: 8_000, bars: {} },
  {
    sessions: 100,
    commits: 400_000,
    quick_commits: 200_000,
    bars: { commits_per_second: atLeast(15_000), p99: below(50), longest_block: atMost(50), checkpoints: atLeast(3) },
  },
  { sessions: 100, commits: 200_000, quick_commits: 100_000, bars: {}, is_steered: true },
  { sessions: 1_000, commits: 200_000, quick_commits: 100_000, bars: {} },
];
const LIMIT_SECONDS = 60;

export async function measureCommits({ folder, quick }: BenchContext): Promise<Figure[]> {
  const figures = [await loadAlone(), ...(await loneCommit(join(folder, "lone"), quick ? 500 : 3_000))];
  for (const level of LEVELS)
    figures.push(...(await measureLevel(join(folder, `commits-${nameOf(level)}`), level, quick)));
  return figures;
}

/** How fast the load would be if commits cost nothing: an upper bound for the store's figures. */
async function loadAlone(): Promise<Figure> {
  const nothing = { commit: () => Promise.resolve({ kind: "committed" as const }) };
  const driven = await drive(nothing, someSessions(100), { commits: 100_000, limit_seconds: 10 });
  return { figure: "the load alone", measured: driven.commits / driven.seconds, unit: "commits/s", bar: null };
}

/** A commit and a bare insert of the same bytes alternate, so that both see the same conditions of the disk. */
async function loneCommit(folder: string, rounds: number): Promise<Figure[]> {
  const store = await openEmbeddedStore({ folder });
  const bare = openBareInsert(`${folder}-bare.sqlite`);
  try {
    const [load] = someSessions(1) as [LoadSession];
    await createSessions(store, [load]);
    await drive(store, [load], { commits: 200, limit_seconds: LIMIT_SECONDS });
    const commits: number[] = [];
    const inserts: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const batch = nextCommit(load);
      const text = JSON.stringify(batch);
      const sent = performance.now();
      await commitOrThrow(store, batch);
      const answered = performance.now();
      bare.insert(text);
      inserts.push(performance.now() - answered);
      commits.push(answered - sent);
    }
    const commit = summarize(commits);
    const insert = summarize(inserts);
    return [
      { figure: "bare fsynced insert, p50", measured: insert.p50, unit: "ms", bar: null },
      { figure: "lone commit in turn with it, p50", measured: commit.p50, unit: "ms", bar: null },
      { figure: "lone commit / bare insert, p50", measured: commit.p50 / insert.p50, unit: "x", bar: atMost(3) },
    ];
  } finally {
    bare.close();
    await store.close();
  }
}

async function measureLevel(folder: string, level: Level, quick: boolean): Promise<Figure[]> {
  const { sessions, commits, quick_commits, bars, is_steered } = level;
  const name = nameOf(level);
  const store = await openEmbeddedStore({ folder });
  try {
    const loads = someSessions(sessions);
    await createSessions(store, loads);
    await drive(store, loads, { commits: Math.max(1_000, sessions * 3), limit_seconds: LIMIT_SECONDS });
    const before = await store.stats();
    const driven = await drive(store, loads, {
      commits: quick ? quick_commits : commits,
      limit_seconds: LIMIT_SECONDS,
      next: is_steered ? nextSteeredCommit : nextCommit,
    });
    const after = await store.stats();
    return [
      ...driveFigures(name, driven, bars),
      figure(name, "checkpoints meanwhile", after.checkpoints - before.checkpoints, "", bars.checkpoints),
      figure(name, "compactions meanwhile", after.compactions - before.compactions, ""),
      figure(name, "rows not yet moved at the end", after.backlog, ""),
    ];
  } finally {
    await store.close();
  }
}

function driveFigures(name: string, { commits, seconds, latencies, blocks }: Driven, bars: Bars): Figure[] {
  const { p50, p99, max } = summarize(latencies);
  return [
    figure(
      name,
      `committed steps, of ${commits.toLocaleString("en-US")}`,
      commits / seconds,
      "/s",
      bars.commits_per_second,
    ),
    figure(name, "latency p50", p50, "ms"),
    figure(name, "latency p99", p99, "ms", bars.p99),
    figure(name, "latency, longest", max, "ms"),
    figure(name, "event loop blocked, longest", blocks.longest, "ms", bars.longest_block),
    figure(name, "event loop at work without a turn, longest", blocks.longest_work, "ms"),
  ];
}

const nameOf = ({ sessions, is_steered }: Level): string =>
  `${sessions.toLocaleString("en-US")} session${sessions === 1 ? "" : "s"}${is_steered ? ", each step steered" : ""}`;

const figure = (name: string, what: string, measured: number, unit: string, bar?: Bar): Figure => ({
  figure: `${name}: ${what}`,
  measured,
  unit,
  bar: bar ?? null,
});

const someSessions = (count: number): LoadSession[] => Array.from({ length: count }, newLoadSession);
