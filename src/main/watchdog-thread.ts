import { writeSync } from "node:fs";
import { hostname } from "node:os";
import { workerData } from "node:worker_threads";
import { SLOT_BYTES, type WatchdogOrder } from "./watchdog.ts";

const { limit_ms, is_silent, turns, slots } = workerData as WatchdogOrder;

const CHECKS = 60;
const MOST_NAMED = 20;
const check_ms = Math.min(1000, limit_ms / CHECKS);

let lastTurn = Atomics.load(turns, 0);
/** Counted in checks, not by the clock: a frozen process or a sleeping machine is not blocked. */
let missed = 0;

setInterval(() => {
  const now = Atomics.load(turns, 0);
  missed = now === lastTurn ? missed + 1 : 0;
  lastTurn = now;
  const blocked_ms = missed * check_ms;
  const isHalfway = blocked_ms >= limit_ms / 2 && blocked_ms - check_ms < limit_ms / 2;
  if (isHalfway) log(40, `nothing else has run for ${seconds(blocked_ms)} s: a step blocks the event loop`);
  if (blocked_ms < limit_ms) return;
  log(60, `nothing else has run for ${seconds(blocked_ms)} s: a step blocks the event loop; the process ends itself`);
  process.kill(process.pid, "SIGKILL");
}, check_ms);

const seconds = (ms: number): number => Math.round(ms / 1000);

/** Writes a line in the format of the program's log, which is unavailable: its thread is the blocked one. */
function log(level: number, msg: string): void {
  if (is_silent) return;
  const running = sessions();
  const line = {
    level,
    time: Date.now(),
    pid: process.pid,
    hostname: hostname(),
    running_steps: running.length,
    session_ids: running.slice(0, MOST_NAMED),
    msg,
  };
  writeSync(2, `${JSON.stringify(line)}\n`);
}

function sessions(): string[] {
  const ids: string[] = [];
  for (let start = 0; start < slots.length; start += SLOT_BYTES) {
    const bytes = slots[start] ?? 0;
    if (bytes > 0) ids.push(Buffer.from(slots.subarray(start + 1, start + 1 + bytes)).toString());
  }
  return ids;
}
