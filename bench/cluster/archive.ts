import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import postgres from "postgres";
import { Archives } from "../../src/archive/archives.ts";
import { VolumeFiles } from "../../src/archive/volume-files.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { seededRandom, summarize } from "../stats.ts";
import { BenchDatabase } from "./database.ts";
import { fillHistory, STEPS_PER_SESSION } from "./fill-history.ts";
import { commitStep, timed } from "./growth.ts";

/** Steps in the small database, and how many times more the large one has before all but the last part are archived. */
const STEPS = 1_000_000;
const QUICK_STEPS = 20_000;
const TIMES_AS_LARGE = 20;
const ROUNDS = 7;
const TIMES = 200;
const WORKER = "bench";
const DAY_MS = 86_400_000;

type Side = { store: Store; first: number; sessions: number };

export async function measureArchive({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const live = (quick ? QUICK_STEPS : STEPS) / STEPS_PER_SESSION;
  const ended = live * (TIMES_AS_LARGE - 1);
  await using small = await opened(database, "small", live, 0);
  await using large = await opened(database, "large", live + ended, ended);
  const table_bytes = await large.size();
  const archives = new Archives(
    large.store,
    async () => new VolumeFiles(null),
    await mkdtemp(join(folder, "volumes-")),
  );
  const began = performance.now();
  archives.start({ kind: "archive", older_than_ms: 30 * DAY_MS, dry_run: false });
  const job = await archives.done();
  if (job?.state !== "done") throw new Error(job?.error ?? "nothing was archived");
  const seconds = (performance.now() - began) / 1000;
  await database.query("vacuum analyze large.agent_steps");
  const archived_share = job.steps / ((live + ended) * STEPS_PER_SESSION);
  const costs = await compare(
    { store: small.store, first: 0, sessions: live },
    { store: large.store, first: ended, sessions: live },
  );
  const random = seededRandom(3);
  const archivedPage = await timed(TIMES, () => page(large.store, Math.floor(random() * ended)));
  await archives.stop();
  return [
    { figure: "steps in the large database", measured: (live + ended) * STEPS_PER_SESSION, unit: "", bar: null },
    { figure: "steps archived", measured: job.steps, unit: "", bar: null },
    { figure: "archived a second", measured: job.steps / seconds, unit: "steps/s", bar: null },
    {
      figure: "bytes of the archive for each byte of the table, indexes included",
      measured: job.bytes / (table_bytes.total * archived_share),
      unit: "x",
      bar: atMost(0.5),
    },
    {
      figure: "bytes of the archive for each byte of the table without its indexes",
      measured: job.bytes / (table_bytes.table * archived_share),
      unit: "x",
      bar: atMost(0.5),
    },
    ...costs,
    { figure: "page of an archived session's steps, p50", measured: archivedPage, unit: "ms", bar: null },
  ];
}

const page = (store: Store, session: number): Promise<unknown> =>
  store.listSteps({ session_id: `session-${session}`, limit: 100, offset: 0 });

/** Alternates between the two, so that other load on the machine affects both. */
async function compare(small: Side, large: Side): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [what, measure] of Object.entries(MEASURES)) {
    const samples: [number, number][] = [];
    for (let round = 0; round < ROUNDS; round++)
      samples.push([await measure(small, round), await measure(large, round)]);
    const [few, many] = [0, 1].map((at) => summarize(samples.map((pair) => pair[at] as number)).p50) as [
      number,
      number,
    ];
    figures.push({ figure: `${what}, small database, p50`, measured: few, unit: "ms", bar: null });
    figures.push({ figure: `${what}, large database with most archived, p50`, measured: many, unit: "ms", bar: null });
    figures.push({ figure: `${what}: large to small`, measured: many / few, unit: "x", bar: atMost(1.2) });
  }
  return figures;
}

const MEASURES: Readonly<Record<string, (side: Side, round: number) => Promise<number>>> = {
  "page of a session's steps": ({ store, first, sessions }, round) => {
    const random = seededRandom(round + 1);
    return timed(TIMES, () => page(store, first + Math.floor(random() * sessions)));
  },
  "commit of a step": ({ store, first, sessions }, round) => {
    const random = seededRandom(round + 1);
    return timed(TIMES, async () => {
      const session_id = `session-${first + Math.floor(random() * sessions)}`;
      const owned = await store.claimSession({ worker: WORKER, session_id });
      if (!owned) throw new Error("a session has another owner");
      return () => commitStep(store, owned);
    });
  },
};

async function opened(database: BenchDatabase, schema: string, sessions: number, ended: number) {
  await database.query(`create schema ${schema}`);
  const url = `${database.url}?search_path=${schema}`;
  const store = await openPostgresStore({ url });
  await fillHistory(url, sessions, ended);
  return {
    store,
    /** Bytes of the steps table, with and without indexes. */
    async size(): Promise<{ total: number; table: number }> {
      const client = postgres(url, { max: 1 });
      const [row] = await client.unsafe(
        "select pg_total_relation_size('agent_steps') as total, pg_table_size('agent_steps') as table",
      );
      await client.end();
      return { total: Number(row?.["total"]), table: Number(row?.["table"]) };
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
