import { createHash } from "node:crypto";
import type { Store, SummaryFilter } from "../src/store/store.ts";
import { atMost, type Figure } from "./figure.ts";
import { summarize } from "./stats.ts";

/** Agents with many sessions; all other agents have one session each. */
export const LARGE_AGENTS = 4;
export const MONIKERS = 4;

const TIMES = 100;
const WARM_UPS = 10;
const MOST_GROWTH = 2;

/** The id of session `n`, with as many different characters as real ids, so that parts of it are as rare. */
export const sessionId = (n: number): string =>
  createHash("sha256")
    .update(`session ${n}`)
    .digest("base64")
    .replaceAll("+", "X")
    .replaceAll("/", "Y")
    .slice(0, 26)
    .toUpperCase();

export type Listed = { sessions: number; lists: readonly List[] };

/** First pages of lists that have the same number of rows at both sizes, read alternately. */
export async function compareLists(few: Listed, many: Listed, most_ms: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [at, { what }] of few.lists.entries()) {
    const { small, big } = await inTurn(few.lists[at] as List, many.lists[at] as List);
    figures.push(
      { figure: `${what} at ${few.sessions} sessions, p50`, measured: small, unit: "ms", bar: null },
      { figure: `${what} at ${many.sessions} sessions, p50`, measured: big, unit: "ms", bar: atMost(most_ms) },
      { figure: `${what}: growth`, measured: big / small, unit: "x", bar: atMost(MOST_GROWTH) },
    );
  }
  return figures;
}

/** `rows`: the number of rows the page must have, so that both sizes do the same work. */
export type List = { what: string; read: () => Promise<readonly unknown[]>; rows: number };

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
  const items = await read();
  const ms = performance.now() - begun;
  if (items.length !== rows) throw new Error(`${what}: ${items.length} rows instead of ${rows}`);
  return ms;
}

/** The lists of sessions that the console shows. */
export function summaryLists(store: Store, sessions: number): List[] {
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
    list("search of two letters that fits none", { q: "øø" }, 0),
    list("search that fits every hundredth", { q: "hundredth" }, 10),
    list("search that fits every tenth", { q: "tenth says" }),
    list("search that fits all", { q: "said last" }),
    list("search that fits all, of a status", { q: "said last", statuses: ["error"] }),
    list("sessions of a conversation", {
      session_ids: Array.from({ length: 100 }, (_, at) => sessionId(at * 7)),
    }),
  ];
}
