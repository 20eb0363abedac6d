import { writeSync } from "node:fs";
import { hostname } from "node:os";
import { workerData } from "node:worker_threads";
import { SLOT_BYTES, type WatchdogOrder } from "./watchdog.ts";

const { limit_ms, is_silent, turns, slots } = workerData as WatchdogOrder;

const LOOKS = 60;
const MOST_NAMED = 20;
const look_ms = Math.min(1000, limit_ms / LOOKS);

let known = Atomics.load(turns, 0);
/** Counted in looks, not by the clock: a process that was frozen, or whose machine slept, was not blocked. */
let missed = 0;

setInterval(() => {
  const now = Atomics.load(turns, 0);
  missed = now === known ? missed + 1 : 0;
  known = now;
  const blocked_ms = missed * look_ms;
  const isHalfway = blocked_ms >= limit_ms / 2 && blocked_ms - look_ms < limit_ms / 2;
  if (isHalfway) log(40, `nothing else has run for ${seconds(blocked_ms)} s: a step computes without a pause`);
  if (blocked_ms < limit_ms) return;
  log(
    60,
    `nothing else has run for ${seconds(blocked_ms)} s: a step computes without a pause; the process ends itself`,
  );
  process.kill(process.pid, "SIGKILL");
}, look_ms);

const seconds = (ms: number): number => Math.round(ms / 1000);

/** A line as the program's own log has them. That log is out of reach: its thread is the one that does nothing. */
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
  const found: string[] = [];
  for (let start = 0; start < slots.length; start += SLOT_BYTES) {
    const bytes = slots[start] ?? 0;
    if (bytes > 0) found.push(Buffer.from(slots.subarray(start + 1, start + 1 + bytes)).toString());
  }
  return found;
}
