import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Deliveries } from "./deliveries.ts";
import { type EverstepProcess, startEverstep } from "./everstep-process.ts";
import { Follower } from "./follower.ts";
import { postRequest, sendChecked } from "./kept-connection.ts";

const SESSIONS = 50;
const SOCKETS = 500;
const STEP_MS = 20;
const CONNECT_AT_ONCE = 25;

/** CPU times in seconds, `peak` in bytes. */
type Load = { seconds: number; server_processor: number; bench_processor: number; peak: number };

/** Ten sockets follow each session from before its first step until after its last. */
export async function measureSockets({ folder, quick }: BenchContext): Promise<Figure[]> {
  const steps = quick ? 100 : 500;
  await using server = await startEverstep(join(folder, "sockets"));
  const alone = (await server.usage()).resident;
  const session_ids = Array.from({ length: SESSIONS }, (_, index) => `followed-${index}`);
  const deliveries = new Deliveries(steps);
  using _followers = await follow(server, session_ids, deliveries);
  const connected = (await server.usage()).resident;
  const load = await runSessions(server, session_ids, steps, deliveries);
  return [
    ...deliveryFigures(deliveries, load),
    ...processorFigures(deliveries, load),
    { figure: name("server's memory before them"), measured: alone / 1e6, unit: "MB", bar: null },
    { figure: name("server's memory once they are connected"), measured: connected / 1e6, unit: "MB", bar: null },
    { figure: name("server's memory at its peak"), measured: load.peak / 1e6, unit: "MB", bar: null },
  ];
}

const name = (what: string): string => `${SOCKETS} sockets, ${SESSIONS} sessions of ${STEP_MS} ms steps: ${what}`;

async function follow(
  { port }: EverstepProcess,
  session_ids: readonly string[],
  deliveries: Deliveries,
): Promise<DisposableStack> {
  const followers = new DisposableStack();
  for (let from = 0; from < SOCKETS; from += CONNECT_AT_ONCE) {
    const some = await Promise.all(Array.from({ length: CONNECT_AT_ONCE }, () => Follower.connect(port)));
    for (const [index, follower] of some.entries()) {
      followers.use(follower);
      const session_id = session_ids[(from + index) % session_ids.length] as string;
      deliveries.listen(follower, session_id);
      await follower.subscribe({ session_id });
    }
  }
  return followers;
}

async function runSessions(
  server: EverstepProcess,
  session_ids: readonly string[],
  steps: number,
  deliveries: Deliveries,
): Promise<Load> {
  const before = await server.usage();
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const create = { agent_id: "bench", moniker: "count", params: { to: steps - 1, delay_ms: STEP_MS } };
  for (const session_id of session_ids)
    await sendChecked(server.connection, postRequest("/api/agents", { ...create, session_id }));
  let peak = before.resident;
  await deliveries.complete(async () => {
    peak = Math.max(peak, (await server.usage()).resident);
  });
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const after = await server.usage();
  return {
    seconds,
    server_processor: after.processor - before.processor,
    bench_processor: (user + system) / 1e6,
    peak: Math.max(peak, after.resident),
  };
}

function deliveryFigures(deliveries: Deliveries, { seconds }: Load): Figure[] {
  const { lost, twice, out_of_order } = deliveries.faults();
  const { p50, p99, max } = summarize(deliveries.latencies);
  return [
    { figure: name(`time of ${deliveries.steps} steps each`), measured: seconds, unit: "s", bar: null },
    { figure: name("rows lost"), measured: lost, unit: "", bar: atMost(0) },
    { figure: name("rows that came twice"), measured: twice, unit: "", bar: atMost(0) },
    { figure: name("rows out of order"), measured: out_of_order, unit: "", bar: atMost(0) },
    { figure: name("rows delivered"), measured: deliveries.latencies.length / seconds, unit: "/s", bar: null },
    { figure: name("a step made to its arrival, p50"), measured: p50, unit: "ms", bar: null },
    { figure: name("a step made to its arrival, p99"), measured: p99, unit: "ms", bar: null },
    { figure: name("a step made to its arrival, longest"), measured: max, unit: "ms", bar: null },
  ];
}

function processorFigures({ latencies }: Deliveries, { seconds, server_processor, bench_processor }: Load): Figure[] {
  const share = (used: number): number => (used / seconds) * 100;
  const of = `share of one of ${availableParallelism()}`;
  const for_a_row = (server_processor * 1e6) / latencies.length;
  return [
    { figure: name(`server's processor, ${of}`), measured: share(server_processor), unit: "%", bar: null },
    { figure: name("server's processor time for a row delivered"), measured: for_a_row, unit: "µs", bar: null },
    { figure: name(`all the clients' processor, ${of}`), measured: share(bench_processor), unit: "%", bar: null },
  ];
}
