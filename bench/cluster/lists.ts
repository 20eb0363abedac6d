import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store, SummaryFilter } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { BenchDatabase } from "./database.ts";
import { fillLists } from "./fill-lists.ts";

const SMALL = 1_000;
const LARGE = 1_000_000;
const QUICK_LARGE = 50_000;
const TIMES = 100;
const MOST_MS = 20;
const MOST_GROWTH = 2;

type Costs = Record<string, number>;

/** First pages of the lists that the console shows, with as many rows at both sizes. */
export async function measureLists({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const large = quick ? QUICK_LARGE : LARGE;
  const few = await measure(database, SMALL);
  const many = await measure(database, large);
  return Object.keys(few).flatMap((what) => {
    const [small = Number.NaN, big = Number.NaN] = [few[what], many[what]];
    return [
      { figure: `${what} at ${SMALL} sessions, p50`, measured: small, unit: "ms", bar: null },
      { figure: `${what} at ${large} sessions, p50`, measured: big, unit: "ms", bar: atMost(MOST_MS) },
      { figure: `${what}: growth`, measured: big / small, unit: "x", bar: atMost(MOST_GROWTH) },
    ];
  });
}

async function measure(database: BenchDatabase, sessions: number): Promise<Costs> {
  await database.query(`create schema listed_${sessions}`);
  const url = `${database.url}?search_path=listed_${sessions}`;
  const store = await openPostgresStore({ url });
  try {
    await fillLists(url, sessions);
    return await measureCosts(store, sessions);
  } finally {
    await store.close();
  }
}

/** `rows`: how many the page must have, so that both sizes are asked for the same. */
type List = { what: string; read: () => Promise<readonly unknown[]>; rows: number };

async function measureCosts(store: Store, sessions: number): Promise<Costs> {
  const costs: Costs = {};
  for (const { what, read, rows } of [...summaryLists(store, sessions), ...otherLists(store)]) {
    const samples: number[] = [];
    for (let time = 0; time < TIMES; time++) {
      const begun = performance.now();
      const found = await read();
      samples.push(performance.now() - begun);
      if (found.length !== rows) throw new Error(`${what}: ${found.length} rows instead of ${rows}`);
    }
    costs[what] = summarize(samples.slice(TIMES / 10)).p50;
  }
  return costs;
}

function summaryLists(store: Store, sessions: number): List[] {
  const list = (what: string, filter: Partial<SummaryFilter>, rows = 100): List => ({
    what,
    rows,
    read: async () => (await store.summarizeSessions({ limit: rows || 100, offset: 0, ...filter })).sessions,
  });
  const last = String(sessions - 1).padStart(7, "0");
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
    list("search that fits one session", { q: `SESSION-${last}` }, 1),
    list("search that fits none", { q: "nowhere" }, 0),
    list("search of two letters that fits none", { q: "qq" }, 0),
    list("search that fits every hundredth", { q: "hundredth" }, 10),
    list("search that fits every tenth", { q: "tenth says" }),
    list("search that fits all", { q: "said last" }),
    list("search that fits all, of a status", { q: "said last", statuses: ["error"] }),
    list("sessions of a conversation", {
      session_ids: Array.from({ length: 100 }, (_, at) => `session-${String(at * 7).padStart(7, "0")}`),
    }),
  ];
}

const otherLists = (store: Store): List[] => [
  { what: "agents with their latest sessions", read: () => store.listAgents({ limit: 500, offset: 0 }), rows: 500 },
  { what: "conversations", read: () => store.listConversations({ limit: 500, offset: 0 }), rows: 500 },
  {
    what: "actions of a session",
    read: () => store.listActions({ session_id: "session-0000001", limit: 200, offset: 0 }),
    rows: 0,
  },
  {
    what: "counts and workers of the system page",
    read: async () => [await store.counts(), await store.listWorkers?.()],
    rows: 2,
  },
];
