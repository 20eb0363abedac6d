import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { postRequest, sendChecked } from "../server/kept-connection.ts";
import { summarize } from "../stats.ts";
import { startWithModel } from "./everstep-with-model.ts";

const WARM_UP = 5;

export async function measureAborts({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using started = await startWithModel(join(folder, "model-aborts"));
  const { everstep, model } = started;
  const { connection } = everstep;
  const create = { agent_id: "bench", moniker: "joke" };
  const { session_id } = await sendChecked<{ session_id: string }>(connection, postRequest("/api/agents", create));
  const times = { waiting: [] as number[], writing: [] as number[] };
  for (let index = -WARM_UP; index < (quick ? 40 : 200); index++) {
    // The interrupted step runs again, so each interrupt leads to another call.
    const call = await model.next();
    const writes = index % 2 === 0;
    if (writes) call.say('{"text": "Once upon a time');
    const sent = performance.now();
    const path = `/api/sessions/${session_id}/interrupt`;
    await sendChecked(connection, postRequest(path, { guidance: `tea ${index}`, mode: "now" }));
    const took = (await call.left) - sent;
    if (index >= 0) times[writes ? "writing" : "waiting"].push(took);
  }
  return [
    ...figures("an interrupt over HTTP to the end of a call that waits for its first word", times.waiting),
    ...figures("an interrupt over HTTP to the end of a call within its text", times.writing),
  ];
}

function figures(name: string, times: readonly number[]): Figure[] {
  const { p50, p99, max } = summarize(times);
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: atMost(100) },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: atMost(100) },
    { figure: `${name}, longest`, measured: max, unit: "ms", bar: null },
  ];
}
