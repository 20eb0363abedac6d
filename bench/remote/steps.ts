import { join } from "node:path";
import { z } from "zod";
import { Runtime } from "../../src/main/runtime.ts";
import { defineMoniker, type Moniker } from "../../src/monikers/moniker.ts";
import { HttpRemote } from "../../src/monikers/remote/http-remote.ts";
import { ProgramRemote } from "../../src/monikers/remote/program-remote.ts";
import { type Remote, remoteMoniker } from "../../src/monikers/remote/remote.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { PYTHON_CLIENT, PythonWorker } from "../../test/remote/python.ts";
import { REPOSITORY } from "../../test/repository-files.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Bar, type Figure } from "../figure.ts";
import { type Summary, summarize } from "../stats.ts";

const PROGRAM = join(REPOSITORY, "test/remote/monikers/py_count.py");
const SECRET = Buffer.from("a secret of the bench, long enough").toString("base64");
const STEPS = 200;
/** The first steps open connections and start processes. */
const WARM_UP = 10;

/** The same work as the worker in Python, in Everstep's own process. */
const inProcess = defineMoniker({
  name: "local",
  kind: "finite",
  description: "Counts to a number.",
  params: z.looseObject({ to: z.int() }),
  step({ step, state }, { params, emit }) {
    const n = Number(state["n"] ?? -1) + 1;
    emit({ kind: "delta", text: String(n) });
    emit({ kind: "usage", tokens: 1 });
    return { step, next_step: String(n + 1), state: { n }, text: String(n), done: n >= params.to };
  },
});

/** The three take turns in each round, so that other load on the machine affects all of them. */
export async function measureRemoteSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using worker = await PythonWorker.start(PROGRAM, { EVERSTEP_REMOTE_SECRET: SECRET });
  const http = new HttpRemote(worker.url, SECRET);
  const env = { PATH: process.env["PATH"] ?? "", EVERSTEP_STDIO: "1", PYTHONPATH: PYTHON_CLIENT };
  const stdio = new ProgramRemote(PROGRAM, { env, most_processes: 1, onError: () => {} });
  const monikers = [inProcess, await countOf(http, "http"), await countOf(stdio, "stdio")];
  const store = await openEmbeddedStore({ folder: join(folder, "remote") });
  const catalog = new Map(monikers.map((moniker) => [moniker.name, moniker]));
  const runtime = new Runtime({ store, catalog, workspace: join(folder, "workspace") });
  await runtime.start();
  const rounds: Record<string, Round[]> = { local: [], http: [], stdio: [] };
  for (let round = 0; round < (quick ? 3 : 10); round++)
    for (const { name } of monikers) rounds[name]?.push(await runRound(runtime, name, `${name}-${round}`));
  await runtime.stop();
  await store.close();
  await Promise.all([http.stop(), stdio.stop()]);
  const figures = summarizeRounds(rounds["local"] ?? []);
  return [
    {
      figure: "a step in Everstep's own process, from commit to commit",
      measured: figures.whole,
      unit: "ms",
      bar: null,
    },
    ...addedFigures("loopback HTTP", summarizeRounds(rounds["http"] ?? []), figures, atMost(3)),
    ...addedFigures("stdio", summarizeRounds(rounds["stdio"] ?? []), figures, null),
  ];
}

/** Milliseconds of each step by itself, and of a step from commit to commit on average. */
type Round = { latencies: number[]; whole: number };
type RoundSummary = Summary & { whole: number };

const summarizeRounds = (rounds: readonly Round[]): RoundSummary => ({
  ...summarize(rounds.flatMap(({ latencies }) => latencies)),
  whole: summarize(rounds.map(({ whole }) => whole)).p50,
});

function addedFigures(over: string, remote: RoundSummary, local: RoundSummary, bar: Bar | null): Figure[] {
  const figure = (what: string, measured: number, limit: Bar | null): Figure => ({
    figure: `a step over ${over} adds, ${what}`,
    measured,
    unit: "ms",
    bar: limit,
  });
  return [
    figure("p50 of the step itself", remote.p50 - local.p50, bar),
    figure("p99 of the step itself", remote.p99 - local.p99, null),
    figure("from commit to commit, median of rounds", remote.whole - local.whole, null),
  ];
}

/** The counting moniker under another name. */
async function countOf(remote: Remote, name: string): Promise<Moniker> {
  const { monikers } = await remote.describe(AbortSignal.timeout(30_000));
  const count = monikers.find((described) => described.name === "py-count");
  if (!count) throw new Error("the worker does not count");
  return { ...remoteMoniker(remote, count, () => {}), name };
}

async function runRound(runtime: Runtime, moniker: string, session_id: string): Promise<Round> {
  const leaving = new AbortController();
  const events = runtime.events.follow({ session_id }, leaving.signal);
  const payload = { moniker, params: { to: STEPS + WARM_UP } };
  await runtime.queue.submit({ action_type: "agent_create", agent_id: "bench", session_id, payload });
  const latencies: number[] = [];
  let begun = Number.NaN;
  for await (const event of events) {
    if (event.kind !== "step") continue;
    const { status, error, iteration, latency_ms } = event.step;
    if (status === "error") throw new Error(`a step of the bench failed: ${error}`);
    if (iteration === WARM_UP) begun = performance.now();
    if (iteration > WARM_UP) latencies.push(latency_ms);
    if (iteration === STEPS + WARM_UP) break;
  }
  leaving.abort();
  return { latencies, whole: (performance.now() - begun) / STEPS };
}
