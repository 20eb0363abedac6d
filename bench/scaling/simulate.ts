import { seededRandom, summarize } from "../stats.ts";
import type { Costs } from "./costs.ts";

/** One database and its workers. Steps arrive at random, equally many at each worker. */
export type Setting = {
  workers: number;
  steps_per_second: number;
  /** CPUs of the database's machine. */
  cores: number;
  /** Milliseconds until a write is on disk. */
  sync_ms: number;
  /** Whether somebody follows the commits, such as a console or a chat: then every process is notified of every commit. */
  followed: boolean;
};

export type Simulated = {
  /** Milliseconds from the end of a moniker's work to the end of its commit. */
  p50: number;
  p99: number;
  /** Of the CPUs, 0 to 1. */
  utilisation: number;
  /** Steps per commit. */
  group: number;
  /** Whether all steps were done: beyond the knee the queue only grows. */
  keeps_up: boolean;
};

/**
 * A process has two connections that write (docs/operating.md), and collects notifications for this long
 * (notify-connection.ts).
 */
const WRITERS = 2;
const DEBOUNCE_MS = 8;
const HEARTBEAT_MS = 500;

type Job = { ms: number; done: () => void };

/**
 * A discrete-event simulation. Time is in milliseconds.
 *
 * - The CPUs serve jobs in order of arrival: commits, notifications, and the queries of idle workers.
 * - After its CPU time a commit waits for the log. One log write is in progress at a time and includes all that wait.
 * - A worker does its own part of one step at a time. It has at most two commits in progress; what arrives meanwhile forms its
 *   next group.
 * - A notification costs more the more processes receive it. A worker sends one for everything it committed within 8 ms.
 */
export function simulate(costs: Costs, setting: Setting, seconds: number, seed = 1): Simulated {
  const { workers, steps_per_second, cores, sync_ms, followed } = setting;
  const random = seededRandom(seed);
  const events = new EventQueue();
  const end = seconds * 1_000;
  const warm = end / 5;
  let busy_ms = 0;
  let running = 0;
  let waiting: Job[] = [];
  let head = 0;
  const start = (job: Job): void => {
    running += 1;
    busy_ms += Math.max(0, Math.min(end, events.now + job.ms) - Math.max(warm, events.now));
    events.after(job.ms, () => {
      running -= 1;
      job.done();
      const next = waiting[head];
      if (next === undefined) return;
      head += 1;
      if (head > 10_000) {
        waiting = waiting.slice(head);
        head = 0;
      }
      start(next);
    });
  };
  const compute = (ms: number, done: () => void): void => {
    if (running < cores) start({ ms, done });
    else waiting.push({ ms, done });
  };
  let syncing = false;
  let unsynced: (() => void)[] = [];
  const sync = (done: () => void): void => {
    unsynced.push(done);
    if (syncing) return;
    syncing = true;
    const write = (): void => {
      const taken = unsynced;
      unsynced = [];
      events.after(sync_ms, () => {
        if (unsynced.length > 0) write();
        else syncing = false;
        for (const one of taken) one();
      });
    };
    write();
  };

  const latencies: number[] = [];
  let commits = 0;
  let committed = 0;
  let arrived = 0;
  const processes = Array.from({ length: workers }, () => ({
    queue: [] as number[],
    writing: 0,
    notifies: false,
    free_at: 0,
  }));
  const notify = (worker: (typeof processes)[number]): void => {
    if (!followed || worker.notifies) return;
    worker.notifies = true;
    events.after(DEBOUNCE_MS, () => {
      worker.notifies = false;
      compute(costs.notify_ms + costs.heard_ms * (workers - 1), () => {});
    });
  };
  const write = (worker: (typeof processes)[number]): void => {
    if (worker.writing >= WRITERS || worker.queue.length === 0) return;
    const group = worker.queue;
    worker.queue = [];
    worker.writing += 1;
    compute(costs.commit_ms + costs.step_ms * (group.length - 1), () =>
      sync(() => {
        worker.writing -= 1;
        if (events.now >= warm) {
          commits += 1;
          committed += group.length;
          for (const at of group) latencies.push(events.now - at);
        }
        notify(worker);
        write(worker);
      }),
    );
  };
  const exponential = (mean: number): number => -Math.log(1 - random()) * mean;
  const arrive = (): void => {
    if (events.now >= warm) arrived += 1;
    const worker = processes[Math.floor(random() * workers)] as (typeof processes)[number];
    const at = events.now;
    worker.free_at = Math.max(at, worker.free_at) + costs.worker_step_ms;
    events.after(worker.free_at - at, () => {
      worker.queue.push(at);
      write(worker);
    });
    events.after(exponential(1_000 / steps_per_second), arrive);
  };
  events.after(0, arrive);
  // What workers ask while they have nothing to do, as heartbeats that are spread evenly.
  const idle_ms = costs.idle_worker_ms + costs.idle_pair_ms * (workers - 1);
  const beat_ms = (idle_ms * HEARTBEAT_MS) / 1_000;
  for (let worker = 0; worker < workers; worker++) {
    const beat = (): void => {
      compute(beat_ms, () => {});
      events.after(HEARTBEAT_MS, beat);
    };
    events.after(random() * HEARTBEAT_MS, beat);
  }
  events.run(end);
  const { p50, p99 } = summarize(latencies);
  const utilisation = busy_ms / (cores * (end - warm));
  return { p50, p99, utilisation, group: committed / commits, keeps_up: committed >= arrived * 0.97 };
}

/** Future events ordered by time; a binary heap. */
class EventQueue {
  readonly #times: number[] = [];
  readonly #actions: (() => void)[] = [];
  now = 0;

  after(ms: number, action: () => void): void {
    const at = this.now + ms;
    let index = this.#times.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#times[parent] as number;
      if (above <= at) break;
      this.#times[index] = above;
      this.#actions[index] = this.#actions[parent] as () => void;
      index = parent;
    }
    this.#times[index] = at;
    this.#actions[index] = action;
  }

  run(until: number): void {
    while (this.#times.length > 0 && (this.#times[0] as number) <= until) {
      this.now = this.#times[0] as number;
      this.#take()();
    }
    this.now = until;
  }

  #take(): () => void {
    const first = this.#actions[0] as () => void;
    const at = this.#times.pop() as number;
    const action = this.#actions.pop() as () => void;
    const length = this.#times.length;
    if (length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length && (this.#times[child + 1] as number) < (this.#times[child] as number)) child += 1;
      if ((this.#times[child] as number) >= at) break;
      this.#times[index] = this.#times[child] as number;
      this.#actions[index] = this.#actions[child] as () => void;
      index = child;
    }
    this.#times[index] = at;
    this.#actions[index] = action;
    return first;
  }
}
