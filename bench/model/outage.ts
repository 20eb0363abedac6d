import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { failing, reply } from "../../test/llm/model-server.ts";
import type { BenchContext } from "../bench.ts";
import { atLeast, type Figure } from "../figure.ts";
import { startWithModel } from "./everstep-with-model.ts";

const SESSIONS = 100;
const OUTAGE_S = 300;
const QUICK_OUTAGE_S = 10;
/** Seconds within which every session must have continued: no delay is longer than a minute. */
const RECOVERY_S = 120;

type Row = { session_id: string; status: string; iteration: number };

/** A provider that is down for five minutes while a hundred sessions run. */
export async function measureOutage({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using started = await startWithModel(join(folder, "model-outage"));
  const { everstep, model } = started;
  const url = `http://127.0.0.1:${everstep.port}`;
  const joke = reply('{"text": "A joke."}');
  model.otherwise(joke);
  const create = { moniker: "joke", params: { subject: "tea" }, options: { step_interval_ms: 1000 } };
  for (let index = 0; index < SESSIONS; index++) {
    const body = JSON.stringify({ agent_id: `agent-${index}`, ...create });
    await fetch(`${url}/api/agents`, { method: "POST", headers: { "content-type": "application/json" }, body });
  }
  const rows = async (): Promise<Row[]> =>
    ((await (await fetch(`${url}/api/sessions?limit=500`)).json()) as { sessions: Row[] }).sessions;
  while ((await rows()).some(({ iteration }) => iteration < 0)) await wait(100);
  model.otherwise(failing(503));
  await wait((quick ? QUICK_OUTAGE_S : OUTAGE_S) * 1000);
  const during = new Map((await rows()).map(({ session_id, iteration }) => [session_id, iteration]));
  model.otherwise(joke);
  const back = performance.now();
  const wentOn = async (): Promise<number> =>
    (await rows()).filter((row) => row.status === "running" && row.iteration > (during.get(row.session_id) ?? 0))
      .length;
  let count = await wentOn();
  while (count < SESSIONS && performance.now() - back < RECOVERY_S * 1000) {
    await wait(100);
    count = await wentOn();
  }
  return [
    {
      figure: `sessions of ${SESSIONS} that go on by themselves after the outage`,
      measured: count,
      unit: "",
      bar: atLeast(SESSIONS),
    },
    {
      figure: "from the provider's return until the last has gone on",
      measured: (performance.now() - back) / 1000,
      unit: "s",
      bar: null,
    },
  ];
}
