import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Child, sharedClock } from "./child.ts";
import type { FilledMessage } from "./timers-fill-process.ts";
import type { WaitingMessage } from "./waiting-process.ts";
import type { RestartedMessage } from "./waiting-restart-process.ts";

const SESSIONS = 10_000;
const TIMERS = 100_000;
const WITH_GC = ["--expose-gc"];

export async function measureWaiting({ folder, quick }: BenchContext): Promise<Figure[]> {
  const full = join(folder, "waiting");
  const created = await create(full, quick ? 3_000 : 10_000, quick ? 50 : 300);
  const nothing = await restart(join(folder, "waiting-none"));
  const restarted = await restart(full);
  if (restarted.sessions !== SESSIONS) throw new Error(`${restarted.sessions} of ${SESSIONS} sessions came back`);
  const timers = await measureTimers(join(folder, "timers"), nothing, quick);
  return [...waitingFigures(created), ...restartFigures(nothing, restarted), ...timers];
}

/** Sessions that each wait until a different time, in a process that has just started. */
async function measureTimers(folder: string, nothing: RestartedMessage, quick: boolean): Promise<Figure[]> {
  const sessions = quick ? TIMERS / 10 : TIMERS;
  await using filling = new Child<FilledMessage>("timers-fill-process.ts", [folder, String(sessions)]);
  await filling.next();
  await filling.stop();
  const { memory, up_ms, idle_cpu, ...restarted } = await restart(folder, quick ? 3_000 : 20_000);
  if (restarted.sessions !== sessions) throw new Error(`${restarted.sessions} of ${sessions} sessions came back`);
  const figure = (what: string): string => `${sessions.toLocaleString("en-US")} sessions with timers: ${what}`;
  const heap = (memory.heap - nothing.memory.heap) / 1_000 / sessions;
  const resident = (memory.resident - nothing.memory.resident) / 1_000 / sessions;
  return [
    { figure: figure("process start to all of them back"), measured: up_ms / 1_000, unit: "s", bar: below(5) },
    { figure: figure("heap of each"), measured: heap, unit: "KB", bar: below(1.5) },
    { figure: figure("resident memory of each"), measured: resident, unit: "KB", bar: null },
    { figure: figure("idle processor, share of one"), measured: idle_cpu * 100, unit: "%", bar: below(1) },
  ];
}

async function create(folder: string, idle_ms: number, echoes: number): Promise<WaitingMessage> {
  const args = [folder, SESSIONS, idle_ms, echoes].map(String);
  await using child = new Child<WaitingMessage>("waiting-process.ts", args, WITH_GC);
  const message = await child.next();
  await child.stop();
  return message;
}

async function restart(folder: string, idle_ms = 0): Promise<RestartedMessage & { up_ms: number }> {
  const begun = sharedClock();
  await using child = new Child<RestartedMessage>("waiting-restart-process.ts", [folder, String(idle_ms)], WITH_GC);
  const message = await child.next();
  await child.stop();
  return { ...message, up_ms: message.up_at - begun };
}

const name = (what: string): string => `${SESSIONS.toLocaleString("en-US")} waiting sessions: ${what}`;
const kilobytesEach = (more: number, less: number): number => (more - less) / 1_000 / SESSIONS;

function waitingFigures({ fresh, empty, full, created_ms, idle_cpu, latencies }: WaitingMessage): Figure[] {
  const echo = summarize(latencies);
  return [
    { figure: name("time to create them"), measured: created_ms / 1_000, unit: "s", bar: null },
    {
      figure: name("heap of each, once created"),
      measured: kilobytesEach(full.heap, empty.heap),
      unit: "KB",
      bar: below(10),
    },
    {
      figure: name("resident memory of each, once created"),
      measured: kilobytesEach(full.resident, empty.resident),
      unit: "KB",
      bar: below(10),
    },
    {
      figure: name("resident memory of each, with what the program first takes for itself"),
      measured: kilobytesEach(full.resident, fresh.resident),
      unit: "KB",
      bar: null,
    },
    { figure: name("idle processor, share of one"), measured: idle_cpu * 100, unit: "%", bar: below(1) },
    { figure: name("guidance to one answer committed, p50"), measured: echo.p50, unit: "ms", bar: null },
    { figure: name("guidance to one answer committed, p99"), measured: echo.p99, unit: "ms", bar: null },
  ];
}

function restartFigures(nothing: RestartedMessage, { memory, up_ms }: RestartedMessage & { up_ms: number }): Figure[] {
  return [
    { figure: name("process start to all of them back"), measured: up_ms / 1_000, unit: "s", bar: null },
    {
      figure: name("heap of each, after a restart"),
      measured: kilobytesEach(memory.heap, nothing.memory.heap),
      unit: "KB",
      bar: below(10),
    },
    {
      figure: name("resident memory of each, after a restart"),
      measured: kilobytesEach(memory.resident, nothing.memory.resident),
      unit: "KB",
      bar: below(10),
    },
  ];
}
