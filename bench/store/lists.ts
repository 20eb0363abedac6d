import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { NEW_SESSION_HISTORY, SESSION_STATUSES, type Session } from "../../src/domain/session.ts";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import type { Figure } from "../figure.ts";
import { compareLists, LARGE_AGENTS, type List, type Listed, MONIKERS, sessionId, summaryLists } from "../lists.ts";
import { commitOrThrow, newLoadSession } from "./load.ts";

const SMALL = 1_000;
const LARGE = 100_000;
const QUICK_LARGE = 20_000;
const MOST_MS = 20;
const CHILDREN = 100;

export async function measureLists({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using resources = new AsyncDisposableStack();
  const few = await filled(folder, SMALL, resources);
  const many = await filled(folder, quick ? QUICK_LARGE : LARGE, resources);
  return [...(await compareLists(few, many, MOST_MS)), ...many.figures];
}

type FilledLists = Listed & { figures: Figure[] };

async function filled(folder: string, sessions: number, resources: AsyncDisposableStack): Promise<FilledLists> {
  const path = join(folder, `lists-${sessions}`);
  const empty = await openEmbeddedStore({ folder: path });
  await fill(empty, sessions);
  await empty.close();
  const [start_ms, store] = await timed(() => openEmbeddedStore({ folder: path }));
  resources.defer(() => store.close());
  const [list_ms] = await timed(() => store.summarizeSessions(FIRST_PAGE));
  const [search_ms] = await timed(() => store.summarizeSessions({ ...FIRST_PAGE, q: "nowhere" }));
  const [index_ms] = await timed(() => indexed(store));
  const { size } = await stat(join(path, "lists.tmp"));
  const figure = (what: string, measured: number, unit = "ms"): Figure => ({
    figure: what,
    measured,
    unit,
    bar: null,
  });
  return {
    sessions,
    lists: [...lists(store, sessions), ...otherLists(store)],
    figures: [
      figure(`start at ${sessions} sessions`, start_ms),
      figure(`the first list at ${sessions} sessions`, list_ms),
      figure(`the first search at ${sessions} sessions`, search_ms),
      figure(`until texts are indexed at ${sessions} sessions`, index_ms),
      figure("disk for the lists of a session", size / sessions, "bytes"),
    ],
  };
}

const FIRST_PAGE = { limit: 100, offset: 0 };

async function timed<Result>(work: () => Promise<Result>): Promise<[ms: number, result: Result]> {
  const begun = performance.now();
  const result = await work();
  return [performance.now() - begun, result];
}

async function indexed(store: EmbeddedStore): Promise<void> {
  while ((await store.stats()).unindexed_texts !== 0) await sleep(10);
}

/** The same sessions that the shared store is measured with (`cluster/fill-lists.ts`); the first has some children. */
async function fill(store: EmbeddedStore, sessions: number): Promise<void> {
  for (let start = 0; start < sessions; start += 500) {
    const some = Array.from({ length: Math.min(500, sessions - start) }, (_, at) => aSession(start + at, sessions));
    await commitOrThrow(store, {
      sessions: some.map((session) => ({ kind: "create", session, worker: null })),
    });
  }
}

const QUESTION = { text: "May I go on?", choices: null, schema: null, about: null, iteration: 0 };
const isAsking = (n: number, status: Session["status"]): boolean =>
  n % 2 === 0 && (status === "running" || status === "waiting");

function aSession(n: number, sessions: number): Session {
  const status = SESSION_STATUSES[n % SESSION_STATUSES.length] as Session["status"];
  const at = new Date(Date.now() - (sessions - n) * 1000).toISOString();
  const tenth = n % 10 === 0 ? "Every tenth says so. " : "";
  const hundredth = n % 100 === 0 ? "The hundredth, too. " : "";
  return {
    ...newLoadSession().session,
    session_id: sessionId(n),
    agent_id: n % 2 === 0 ? `agent-${(n / 2) % LARGE_AGENTS}` : `lone agent ${n}`,
    moniker: `moniker-${Math.floor(n / 2) % MONIKERS}`,
    conversation_id: null,
    status,
    stop_reason: status === "stopped" ? "max_steps" : null,
    result: `This is what session ${n} said last. ${tenth}${hundredth}${sessionId(-n)}`,
    created_at: at,
    updated_at: at,
    ...NEW_SESSION_HISTORY,
    pause_reason: status === "paused" ? { kind: "breakpoint", step_token: "3" } : null,
    question: isAsking(n, status) ? { ...QUESTION, question_id: sessionId(n), asked_at: at } : null,
    spawned_by: n > 0 && n <= CHILDREN ? { session_id: sessionId(0), iteration: 0 } : null,
  };
}

const lists = (store: Store, sessions: number): List[] => [
  ...summaryLists(store, sessions),
  ...(["created_at", "updated_at"] as const).map((sort) => ({
    what: `sessions after a page, by ${sort}`,
    rows: 100,
    read: async () => {
      const first = { limit: 100, offset: 0, sort };
      const last = (await store.summarizeSessions(first)).sessions.at(-1);
      if (!last) return [];
      return (await store.summarizeSessions({ ...first, after: { session_id: last.session_id, at: last[sort] } }))
        .sessions;
    },
  })),
  {
    what: "children of a session",
    rows: CHILDREN,
    read: async () => (await store.summarizeSessions({ limit: 100, offset: 0, spawned_by: sessionId(0) })).sessions,
  },
];

const otherLists = (store: Store): List[] => [
  { what: "agents with their latest sessions", read: () => store.listAgents({ limit: 100, offset: 0 }), rows: 100 },
  {
    what: "sessions of a status with their states",
    read: () => store.listSessions({ status: "error", limit: 100, offset: 0 }),
    rows: 100,
  },
  { what: "counts of the system page", read: async () => [await store.counts()], rows: 1 },
];
