import { type Action, newAction } from "../../src/domain/action.ts";
import { settle } from "../../src/domain/receipt.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { seededRandom, summarize } from "../stats.ts";
import { BenchDatabase } from "./database.ts";
import { fill } from "./fill.ts";

const STEPS_PER_SESSION = 10;
const SMALL = 1_000;
const LARGE = 1_000_000;
const QUICK_LARGE = 100_000;
const TIMES = 300;
const WORKER = "bench";

type Costs = Record<string, number>;

export async function measureGrowth({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const large = quick ? QUICK_LARGE : LARGE;
  const few = await measure(database, SMALL);
  const many = await measure(database, large);
  return Object.keys(few).flatMap((what) => [
    { figure: `${what} at ${SMALL} steps, p50`, measured: few[what] ?? Number.NaN, unit: "ms", bar: null },
    { figure: `${what} at ${large} steps, p50`, measured: many[what] ?? Number.NaN, unit: "ms", bar: null },
    {
      figure: `${what}: growth`,
      measured: (many[what] ?? Number.NaN) / (few[what] ?? Number.NaN),
      unit: "x",
      bar: atMost(2),
    },
  ]);
}

async function measure(database: BenchDatabase, steps: number): Promise<Costs> {
  const sessions = steps / STEPS_PER_SESSION;
  await database.query(`create schema grown_${steps}`);
  const url = `${database.url}?search_path=grown_${steps}`;
  const store = await openPostgresStore({ url });
  try {
    await fill(url, sessions, STEPS_PER_SESSION);
    // Half of the sessions are owned, as in a busy cluster, whose tables are vacuumed now and then.
    await store.claimSessions({ worker: WORKER, limit: sessions / 2 });
    await database.query(`vacuum analyze grown_${steps}.agent_state`);
    return await measureCosts(store, sessions);
  } finally {
    await store.close();
  }
}

async function measureCosts(store: Store, sessions: number): Promise<Costs> {
  const random = seededRandom(1);
  const someone = (): string => `session-${Math.floor(random() * sessions)}`;
  const page = { limit: 100, offset: 0 };
  const costs: Costs = {};
  costs["claim of a session"] = await timed(40, async () => {
    if ((await store.claimSessions({ worker: WORKER, limit: 1 })).length === 0) throw new Error("no session is free");
  });
  let claimed: Action | null = null;
  costs["claim of an action"] = await timed(TIMES, async (time) => {
    // The first is claimed when it is written; the second is looked up after the first has ended.
    const session_id = `session-${time % (sessions / 2)}`;
    const request = { action_type: "agent_pause", agent_id: "agent", session_id, payload: {} } as const;
    const [first, second] = [newAction(request), newAction(request)];
    const end = (action: Action) => store.commit({ actions: [settle(action, { kind: "ok" })] });
    if (claimed) await end(claimed);
    await store.commit({ actions: [first] });
    await store.claimActions({ worker: WORKER, limit: 10 });
    await store.commit({ actions: [second] });
    await end(first);
    claimed = second;
    return async () => {
      if ((await store.claimActions({ worker: WORKER, limit: 10 })).length === 0) throw new Error("nothing to claim");
    };
  });
  costs["commit of a step"] = await timed(TIMES, async () => {
    const owned = await store.claimSession({ worker: WORKER, session_id: someone() });
    if (!owned) throw new Error("a session has another owner");
    return () => commitStep(store, owned);
  });
  costs["page of 100 sessions"] = await timed(TIMES, () => store.listSessions(page));
  costs["page of an agent's sessions"] = await timed(TIMES, () =>
    store.listSessions({ ...page, agent_id: `agent-${Math.floor(random() * (sessions / 10))}` }),
  );
  costs["page of a session's steps"] = await timed(TIMES, () => store.listSteps({ ...page, session_id: someone() }));
  costs["an agent's latest session"] = await timed(TIMES, () =>
    store.getAgent(`agent-${Math.floor(random() * (sessions / 10))}`),
  );
  return costs;
}

export async function commitStep(
  store: Store,
  owned: NonNullable<Awaited<ReturnType<Store["claimSession"]>>>,
): Promise<void> {
  const { session, owner } = owned;
  const iteration = session.iteration + 1;
  const created_at = new Date().toISOString();
  const { agent_id, session_id } = session;
  const outcome = await store.commit({
    sessions: [{ kind: "update", session: { ...session, iteration, updated_at: created_at }, owner }],
    steps: [
      {
        id: `${session_id} ${iteration}`,
        created_at,
        agent_id,
        session_id,
        iteration,
        status: "ok",
        step_token: String(iteration),
        next_step_token: String(iteration + 1),
        text: "one more step",
        data: null,
        state: { n: iteration },
        guidance: [],
        notes: null,
        latency_ms: 1,
        tokens_used: 0,
        error: null,
        action_ids: [],
        moniker_version: null,
        cost_usd: 0,
        attempts: 1,
        calls: [],
        directives: null,
        crashes: 0,
      },
    ],
  });
  if (outcome.kind !== "committed") throw new Error(`a commit was answered ${outcome.kind}`);
}

/** The median in milliseconds of the functions that `prepare` returns; `prepare` itself is not measured. */
export async function timed(times: number, prepare: (time: number) => Promise<unknown>): Promise<number> {
  const samples: number[] = [];
  for (let time = 0; time < times; time++) {
    let begun = performance.now();
    const prepared = await prepare(time);
    if (typeof prepared === "function") {
      begun = performance.now();
      await (prepared as () => Promise<void>)();
    }
    samples.push(performance.now() - begun);
  }
  return summarize(samples.slice(Math.floor(times / 10))).p50;
}
