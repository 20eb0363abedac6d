import { join } from "node:path";
import type { Batch } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atLeast, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { drive } from "../store/drive.ts";
import { createSessions, type LoadSession, newLoadSession } from "../store/load.ts";
import { News } from "./news.ts";
import { type OpenRuntime, openRuntime } from "./open-runtime.ts";

const SESSIONS = 100;
const STEPS = 20;
/** Long enough that rows are archived in LanceDB many times. */
const SUSTAINED_STEPS = 500;

type Round = { steps_per_second: number; cpu_ms_per_step: number; gaps: number[] };

export async function measureSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  const watch = new StepWatch();
  await using runtime = await openRuntime(join(folder, "steps"), { onCommitted: (batch) => watch.hear(batch) });
  const loads = Array.from({ length: SESSIONS }, newLoadSession);
  await createSessions(runtime.store, loads);
  const rounds: Round[] = [];
  const alone: number[] = [];
  await runRound(runtime, watch, STEPS);
  for (let index = 0; index < (quick ? 5 : 15); index++) {
    rounds.push(await runRound(runtime, watch, STEPS));
    alone.push(await storeAlone(runtime, loads));
  }
  const sustained = await runRound(runtime, watch, quick ? 100 : SUSTAINED_STEPS);
  return [
    ...roundFigures(rounds, summarize(alone).p50),
    ...sustainedFigures(sustained, quick ? 100 : SUSTAINED_STEPS, (await runtime.store.stats()).checkpoints),
  ];
}

function roundFigures(rounds: readonly Round[], alone: number): Figure[] {
  const speeds = rounds.map((round) => round.steps_per_second);
  const gap = summarize(rounds.flatMap((round) => round.gaps));
  const cpu = summarize(rounds.map((round) => round.cpu_ms_per_step));
  const figure = (what: string, measured: number, unit: string): Figure => ({
    figure: `${SESSIONS} sessions x ${STEPS} steps: ${what}`,
    measured,
    unit,
    bar: null,
  });
  return [
    {
      ...figure(`committed steps, median of ${rounds.length} rounds`, summarize(speeds).p50, "/s"),
      bar: atLeast(8_000),
    },
    figure("committed steps, slowest round", Math.min(...speeds), "/s"),
    figure("committed steps, fastest round", Math.max(...speeds), "/s"),
    figure("as many commits to the store alone in turn with them, median", alone, "/s"),
    figure("share of the store's own speed", (summarize(speeds).p50 / alone) * 100, "%"),
    figure("from a session's step to its next, p50", gap.p50, "ms"),
    figure("from a session's step to its next, p99", gap.p99, "ms"),
    figure("processor time per step, all threads", cpu.p50, "ms"),
  ];
}

function sustainedFigures({ steps_per_second, gaps, cpu_ms_per_step }: Round, steps: number, checkpoints: number) {
  const name = `${SESSIONS} sessions x ${steps} steps`;
  return [
    { figure: `${name}: committed steps`, measured: steps_per_second, unit: "/s", bar: null },
    { figure: `${name}: from a session's step to its next, p99`, measured: summarize(gaps).p99, unit: "ms", bar: null },
    { figure: `${name}: processor time per step, all threads`, measured: cpu_ms_per_step, unit: "ms", bar: null },
    { figure: "checkpoints in all rounds", measured: checkpoints, unit: "", bar: null },
  ];
}

/** What the disk and the machine currently allow: the store without a runtime. */
async function storeAlone({ store }: OpenRuntime, loads: readonly LoadSession[]): Promise<number> {
  const { commits, seconds } = await drive(store, loads, { commits: SESSIONS * STEPS, limit_seconds: 60 });
  return commits / seconds;
}

/** From the first request to the last session's last commit. */
async function runRound(runtime: OpenRuntime, watch: StepWatch, steps: number): Promise<Round> {
  watch.reset();
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const request = { action_type: "agent_create", agent_id: "bench", payload: countTo(steps - 1) } as const;
  const created = await Promise.all(Array.from({ length: SESSIONS }, () => runtime.submit(request)));
  await watch.news.until("every session is done", () => watch.done === SESSIONS);
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const total = SESSIONS * steps;
  for (const { session_id } of created) await checkCounted(runtime, session_id, steps);
  return { steps_per_second: total / seconds, cpu_ms_per_step: (user + system) / 1_000 / total, gaps: watch.gaps };
}

const countTo = (to: number) => ({ moniker: "count", params: { to } });

/** A round that lost or repeated a step would be fast for the wrong reason. */
async function checkCounted({ store }: OpenRuntime, session_id: string, steps: number): Promise<void> {
  const session = await store.getSession(session_id);
  const rows = await store.listSteps({ session_id, limit: steps + 1, offset: 0 });
  const counted = rows.every(({ iteration, text }, index) => iteration === index && text === String(index));
  if (session?.status !== "done" || rows.length !== steps || !counted)
    throw new Error(`session ${session_id} is ${session?.status} with ${rows.length} of ${steps} steps`);
}

/** When each session's steps were committed. */
class StepWatch {
  readonly news = new News();
  done = 0;
  /** Milliseconds from the end of each step's commit to the end of the next one's, over all sessions. */
  gaps: number[] = [];
  readonly #last = new Map<string, number>();

  reset(): void {
    this.done = 0;
    this.gaps = [];
    this.#last.clear();
  }

  hear({ steps, sessions }: Batch): void {
    const at = performance.now();
    for (const { session_id } of steps ?? []) {
      const last = this.#last.get(session_id);
      if (last !== undefined) this.gaps.push(at - last);
      this.#last.set(session_id, at);
    }
    for (const { session } of sessions ?? []) {
      if (session.status !== "done") continue;
      this.done += 1;
      this.news.tell();
    }
  }
}
