import { askedToStop, say, sharedClock } from "./child.ts";
import { type Memory, memoryNow } from "./memory.ts";
import { openRuntime } from "./open-runtime.ts";

/** `up_at` is of the shared clock. */
export type RestartedMessage = { memory: Memory; sessions: number; up_at: number };

const [folder] = process.argv.slice(2);
if (!folder) throw new Error("a folder is needed");

const stopped = askedToStop();
await using runtime = await openRuntime(folder);
const up_at = sharedClock();
say({ memory: memoryNow(), sessions: runtime.rehydrated, up_at } satisfies RestartedMessage);
await stopped;
