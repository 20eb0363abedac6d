import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import type { Figure } from "../figure.ts";
import { compareLists, type List, type Listed, sessionId, summaryLists } from "../lists.ts";
import { BenchDatabase } from "./database.ts";
import { fillLists } from "./fill-lists.ts";

const SMALL = 1_000;
const LARGE = 1_000_000;
const QUICK_LARGE = 50_000;
const MOST_MS = 20;

export async function measureLists({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using resources = new AsyncDisposableStack();
  const database = resources.use(await BenchDatabase.start(folder));
  const few = await filled(database, SMALL, resources);
  const many = await filled(database, quick ? QUICK_LARGE : LARGE, resources);
  // Awaited here: the database is closed at the end of this scope.
  return await compareLists(few, many, MOST_MS);
}

async function filled(database: BenchDatabase, sessions: number, resources: AsyncDisposableStack): Promise<Listed> {
  await database.query(`create schema listed_${sessions}`);
  const url = `${database.url}?search_path=listed_${sessions}`;
  // Closed while it is filled: its upkeep would take its turn too early, and lists would be measured before their texts are
  // indexed.
  await (await openPostgresStore({ url })).close();
  await fillLists(url, sessions);
  const store = await openPostgresStore({ url });
  resources.defer(() => store.close());
  return { sessions, lists: [...summaryLists(store, sessions), ...otherLists(store)] };
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
