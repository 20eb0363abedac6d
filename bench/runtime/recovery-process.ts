import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { defineMoniker } from "../../src/monikers/moniker.ts";
import { askedToStop, say, sharedClock } from "./child.ts";
import { News } from "./news.ts";
import { openRuntime } from "./open-runtime.ts";

/** Sent when every session has started a step. Times are of the shared clock. */
export type RunningMessage = { sessions: string[]; store_open_at: number; running_at: number };

const STEP_MS = 20;

const [folder, life, sessions] = process.argv.slice(2);
if (!folder || !life || !sessions) throw new Error("a folder, the number of this life and of sessions are needed");

const stopped = askedToStop();
// One write per line, so that a killed process leaves only whole lines.
const executed = openSync(join(folder, "executed.log"), "a");
const acknowledged = openSync(join(folder, "acknowledged.log"), "a");
const started = new Set<string>();
const news = new News();

/** Records every execution outside the store, and the process that ran it in the step's row. */
const traced = defineMoniker({
  name: "traced",
  kind: "continuous",
  description: "Counts, and writes each step into a file as it happens.",
  params: z.object({}),
  async step({ step }, { ids: { session_id, iteration }, signal }) {
    started.add(session_id);
    news.tell();
    await wait(STEP_MS, undefined, { signal });
    writeSync(executed, `${life} ${session_id} ${iteration}\n`);
    const data = { life: Number(life) };
    return { step, next_step: String(iteration + 1), state: { n: iteration }, text: step, data, done: false };
  },
});

await using runtime = await openRuntime(join(folder, "store"), {
  moniker: traced,
  onCommitted({ steps }) {
    for (const { session_id, iteration } of steps ?? []) writeSync(acknowledged, `${session_id} ${iteration}\n`);
  },
});
const store_open_at = performance.timeOrigin + runtime.store_open_at;
if (life === "1") {
  const request = { action_type: "agent_create", agent_id: "bench", payload: { moniker: "traced" } } as const;
  await Promise.all(Array.from({ length: Number(sessions) }, () => runtime.submit(request)));
}
await news.until("every session runs", () => started.size === Number(sessions));
say({ sessions: [...started], store_open_at, running_at: sharedClock() } satisfies RunningMessage);
await stopped;
