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
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";

const PROGRAM = join(REPOSITORY, "test/remote/monikers/py_count.py");
const SECRET = Buffer.from("a secret of the bench, long enough").toString("base64");
const STEPS = 200;
/** The first steps open connections and start processes. */
const WARM_UP = 10;

/** What the worker in Python does, in Everstep's own process. */
const local = defineMoniker({
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

/** Rounds of the three in turn, so that what else the machine does meets each of them. */
export async function measureRemoteSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using worker = await PythonWorker.start(PROGRAM, { EVERSTEP_REMOTE_SECRET: SECRET });
  const http = new HttpRemote(worker.url, SECRET);
  const env = { PATH: process.env["PATH"] ?? "", EVERSTEP_STDIO: "1", PYTHONPATH: PYTHON_CLIENT };
  const stdio = new ProgramRemote(PROGRAM, { env, most_processes: 1, onError: () => {} });
  const monikers = [local, await countOf(http, "http"), await countOf(stdio, "stdio")];
  const store = await openEmbeddedStore({ folder: join(folder, "remote") });
  const catalog = new Map(monikers.map((moniker) => [moniker.name, moniker]));
  const runtime = new Runtime({ store, catalog, workspace: join(folder, "workspace") });
  await runtime.start();
  const gaps: Record<string, number[]> = { local: [], http: [], stdio: [] };
  for (let round = 0; round < (quick ? 3 : 10); round++)
    for (const { name } of monikers) gaps[name]?.push(...(await gapsOf(runtime, name, `${name}-${round}`)));
  await runtime.stop();
  await store.close();
  await Promise.all([http.stop(), stdio.stop()]);
  const figure = (name: string, share: "p50" | "p99"): number => summarize(gaps[name] ?? [])[share];
  const added = (name: string, share: "p50" | "p99"): number => figure(name, share) - figure("local", share);
  return [
    { figure: "a step in Everstep's own process, p50", measured: figure("local", "p50"), unit: "ms", bar: null },
    { figure: "a step over loopback HTTP adds, p50", measured: added("http", "p50"), unit: "ms", bar: atMost(3) },
    { figure: "a step over loopback HTTP adds, p99", measured: added("http", "p99"), unit: "ms", bar: null },
    { figure: "a step over stdio adds, p50", measured: added("stdio", "p50"), unit: "ms", bar: null },
    { figure: "a step over stdio adds, p99", measured: added("stdio", "p99"), unit: "ms", bar: null },
  ];
}

/** The moniker that counts, under another name. */
async function countOf(remote: Remote, name: string): Promise<Moniker> {
  const { monikers } = await remote.describe(AbortSignal.timeout(30_000));
  const count = monikers.find((described) => described.name === "py-count");
  if (!count) throw new Error("the worker does not count");
  return { ...remoteMoniker(remote, count, () => {}), name };
}

/** Milliseconds from each committed step to the next. */
async function gapsOf(runtime: Runtime, moniker: string, session_id: string): Promise<number[]> {
  const leaving = new AbortController();
  const events = runtime.events.follow({ session_id }, leaving.signal);
  const payload = { moniker, params: { to: STEPS + WARM_UP } };
  await runtime.queue.submit({ action_type: "agent_create", agent_id: "bench", session_id, payload });
  const gaps: number[] = [];
  let last = Number.NaN;
  for await (const event of events) {
    if (event.kind !== "step") continue;
    if (event.step.status === "error") throw new Error(`a step of the bench failed: ${event.step.error}`);
    const at = performance.now();
    if (event.step.iteration > WARM_UP) gaps.push(at - last);
    last = at;
    if (event.step.iteration === STEPS + WARM_UP) break;
  }
  leaving.abort();
  return gaps;
}
