import { askedToStop, say, sharedClock } from "./child.ts";
import { idleCpu } from "./idle-cpu.ts";
import { type Memory, memoryNow } from "./memory.ts";
import { openRuntime } from "./open-runtime.ts";

/** `up_at` is a time of the shared clock. */
export type RestartedMessage = {
  memory: Memory;
  sessions: number;
  up_at: number;
  /** Share of one CPU. */
  idle_cpu: number;
};

const [folder, idle_ms] = process.argv.slice(2);
if (!folder || !idle_ms) throw new Error("a folder and a time to idle are needed");

const stopped = askedToStop();
await using runtime = await openRuntime(folder);
const up_at = sharedClock();
const memory = memoryNow();
const idle_cpu = await idleCpu(Number(idle_ms));
say({ memory, sessions: runtime.rehydrated, up_at, idle_cpu } satisfies RestartedMessage);
await stopped;
