import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store, SummaryFilter } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { BenchDatabase } from "./database.ts";
import { fillLists, sessionId } from "./fill-lists.ts";

const SMALL = 1_000;
const LARGE = 1_000_000;
const QUICK_LARGE = 50_000;
const TIMES = 100;
const WARM_UPS = 10;
const MOST_MS = 20;
const MOST_GROWTH = 2;

/** First pages of the lists that the console shows, with as many rows at both sizes, asked for in turn. */
export async function measureLists({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using resources = new AsyncDisposableStack();
  const database = resources.use(await BenchDatabase.start(folder));
  const large = quick ? QUICK_LARGE : LARGE;
  const [few, many] = [await filled(database, SMALL, resources), await filled(database, large, resources)];
  const figures: Figure[] = [];
  for (const [at, { what }] of few.entries()) {
    const { small, big } = await inTurn(few[at] as List, many[at] as List);
    figures.push(
      { figure: `${what} at ${SMALL} sessions, p50`, measured: small, unit: "ms", bar: null },
      { figure: `${what} at ${large} sessions, p50`, measured: big, unit: "ms", bar: atMost(MOST_MS) },
      { figure: `${what}: growth`, measured: big / small, unit: "x", bar: atMost(MOST_GROWTH) },
    );
  }
  return figures;
}

async function filled(database: BenchDatabase, sessions: number, resources: AsyncDisposableStack): Promise<List[]> {
  await database.query(`create schema listed_${sessions}`);
  const url = `${database.url}?search_path=listed_${sessions}`;
  const store = await openPostgresStore({ url });
  resources.defer(() => store.close());
  await fillLists(url, sessions);
  return [...summaryLists(store, sessions), ...otherLists(store)];
}

/** `rows`: how many the page must have, so that both sizes are asked for the same. */
type List = { what: string; read: () => Promise<readonly unknown[]>; rows: number };

async function inTurn(few: List, many: List): Promise<{ small: number; big: number }> {
  const samples = { small: [] as number[], big: [] as number[] };
  for (let time = -WARM_UPS; time < TIMES; time++) {
    const [small, big] = [await timed(few), await timed(many)];
    if (time < 0) continue;
    samples.small.push(small);
    samples.big.push(big);
  }
  return { small: summarize(samples.small).p50, big: summarize(samples.big).p50 };
}

async function timed({ what, read, rows }: List): Promise<number> {
  const begun = performance.now();
  const found = await read();
  const ms = performance.now() - begun;
  if (found.length !== rows) throw new Error(`${what}: ${found.length} rows instead of ${rows}`);
  return ms;
}

function summaryLists(store: Store, sessions: number): List[] {
  const list = (what: string, filter: Partial<SummaryFilter>, rows = 100): List => ({
    what,
    rows,
    read: async () => (await store.summarizeSessions({ limit: rows || 100, offset: 0, ...filter })).sessions,
  });
  return [
    list("all sessions", {}),
    list("sessions of a status", { statuses: ["error"] }),
    list("sessions of three statuses", { statuses: ["running", "waiting", "paused"] }),
    list("sessions that need a person", { needs_person: true }, 500),
    list("sessions of a moniker", { moniker: "moniker-1" }),
    list("sessions of a moniker and a status", { moniker: "moniker-1", statuses: ["done"] }, 30),
    list("sessions of an agent", { agent_id: "agent-1" }),
    list("sessions of an agent and a status", { agent_id: "agent-1", statuses: ["done"] }, 15),
    list("sessions by their last update", { sort: "updated_at" }),
    list("search that fits one session", { q: sessionId(sessions - 1).toLowerCase() }, 1),
    list("search that fits none", { q: "nowhere" }, 0),
    list("search of two letters that fits none", { q: "qq" }, 0),
    list("search that fits every hundredth", { q: "hundredth" }, 10),
    list("search that fits every tenth", { q: "tenth says" }),
    list("search that fits all", { q: "said last" }),
    list("search that fits all, of a status", { q: "said last", statuses: ["error"] }),
    list("sessions of a conversation", {
      session_ids: Array.from({ length: 100 }, (_, at) => sessionId(at * 7)),
    }),
  ];
}

const otherLists = (store: Store): List[] => [
  { what: "agents with their latest sessions", read: () => store.listAgents({ limit: 100, offset: 0 }), rows: 100 },
  { what: "conversations", read: () => store.listConversations({ limit: 500, offset: 0 }), rows: 500 },
  {
    what: "actions of a session",
    read: () => store.listActions({ session_id: sessionId(1), limit: 200, offset: 0 }),
    rows: 0,
  },
  {
    what: "counts and workers of the system page",
    read: async () => [await store.counts(), await store.listWorkers?.()],
    rows: 2,
  },
];
