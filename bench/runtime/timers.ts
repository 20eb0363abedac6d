import { join } from "node:path";
import { z } from "zod";
import { Runtime } from "../../src/main/runtime.ts";
import { defineMoniker } from "../../src/monikers/moniker.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";

const TIMERS = 1000;
/** Milliseconds over which the due times are spread, once all sessions wait. */
const SPREAD_MS = 10_000;
const SETTLE_MS = 5000;

/** Waits until its time, and reports how late it was woken. */
const sleeper = (report: (late_ms: number) => void) =>
  defineMoniker<{ until: string }>({
    name: "sleeper",
    kind: "finite",
    description: "Waits until a time.",
    params: z.object({ until: z.iso.datetime() }),
    step({ step, state }, { params }) {
      if (step === "0") return { step, next_step: "1", state, done: false, wait: { until: params.until } };
      report(Date.now() - Date.parse(params.until));
      return { step, next_step: "2", state, done: true };
    },
  });

/** From the time that a session waits for to the start of its step. */
export async function measureTimers({ folder }: BenchContext): Promise<Figure[]> {
  const late: number[] = [];
  const all = Promise.withResolvers<void>();
  const moniker = sleeper((late_ms) => {
    late.push(late_ms);
    if (late.length === TIMERS) all.resolve();
  });
  const store = await openEmbeddedStore({ folder: join(folder, "timers-late") });
  const catalog = new Map([[moniker.name, moniker]]);
  const runtime = new Runtime({ store, catalog, workspace: join(folder, "workspace") });
  await runtime.start();
  const first = Date.now() + SETTLE_MS;
  await Promise.all(
    Array.from({ length: TIMERS }, (_, index) => {
      const until = new Date(first + Math.floor((index * SPREAD_MS) / TIMERS)).toISOString();
      const payload = { moniker: moniker.name, params: { until } };
      return runtime.queue.submit({ action_type: "agent_create", agent_id: "bench", payload });
    }),
  );
  await all.promise;
  await runtime.stop();
  await store.close();
  const { p50, p99, max } = summarize(late);
  const name = `${TIMERS.toLocaleString("en-US")} timers within ${SPREAD_MS / 1000} s: lateness`;
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: null },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: below(100) },
    { figure: `${name}, longest`, measured: max, unit: "ms", bar: null },
    { figure: `${name}, earliest`, measured: Math.min(...late), unit: "ms", bar: null },
  ];
}
