import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { DeafClient } from "../../test/agent-ws/deaf-client.ts";
import type { BenchContext } from "../bench.ts";
import { atLeast, below, type Figure } from "../figure.ts";
import { type EverstepProcess, startEverstep } from "./everstep-process.ts";
import { Follower } from "./follower.ts";
import { postRequest, sendChecked } from "./kept-connection.ts";

const IDLE = 1000;
const NEVER_READING = 10;
const SESSIONS = 120;
const STEP_MS = 100;
const STATE_BYTES = 2000;
const CONNECT_AT_ONCE = 25;
const LOOK_EVERY_MS = 250;
const STEPS = 'everstep_step_duration_seconds_count{status="ok"}';

/** What many idle clients cost while others work. Those dropped because they do not read reconnect at once. */
export async function measureSilentClients({ folder, quick }: BenchContext): Promise<Figure[]> {
  const seconds = quick ? 20 : 90;
  await using server = await startEverstep(join(folder, "silent-clients"));
  using stack = new DisposableStack();
  for (let count = 0; count < IDLE; count += CONNECT_AT_ONCE)
    for (const idle of await Promise.all(Array.from({ length: CONNECT_AT_ONCE }, () => Follower.connect(server.port))))
      stack.use(idle);
  const over = new AbortController();
  stack.defer(() => over.abort());
  let dropped = 0;
  for (let count = 0; count < NEVER_READING; count += 1)
    void subscribeAndNeverRead(server.port, over.signal, () => (dropped += 1));
  for (let index = 0; index < SESSIONS; index += 1) {
    const params = { to: 10_000_000, delay_ms: STEP_MS, payload_bytes: STATE_BYTES };
    await sendChecked(
      server.connection,
      postRequest("/api/agents", { agent_id: `a${index}`, moniker: "count", params }),
    );
  }
  const { peak, steps_per_second } = await watch(server, seconds);
  return [
    { figure: name("server's memory at its peak"), measured: peak / 1e6, unit: "MB", bar: below(600) },
    { figure: name("steps"), measured: steps_per_second, unit: "/s", bar: atLeast(1000) },
    { figure: name("readers that were dropped and came again"), measured: dropped, unit: "", bar: null },
  ];
}

const name = (what: string): string =>
  `${IDLE} idle sockets, ${NEVER_READING} that follow everything and never read: ${what}`;

async function watch(server: EverstepProcess, seconds: number): Promise<{ peak: number; steps_per_second: number }> {
  const begun = performance.now();
  const steps = await server.metric(STEPS);
  let peak = 0;
  while (performance.now() - begun < seconds * 1000) {
    peak = Math.max(peak, (await server.usage()).resident);
    await wait(LOOK_EVERY_MS);
  }
  const measured_s = (performance.now() - begun) / 1000;
  return { peak, steps_per_second: ((await server.metric(STEPS)) - steps) / measured_s };
}

async function subscribeAndNeverRead(port: number, over: AbortSignal, dropped: () => void): Promise<void> {
  while (!over.aborted) {
    using client = await DeafClient.open(`http://127.0.0.1:${port}`, "/socket.io/?EIO=4&transport=websocket");
    await client.hear("0{");
    await client.send("40");
    await client.hear("40{");
    await client.send('420["subscribe",{"all":true}]');
    await client.hear("430[");
    const pongs = setInterval(() => void client.send("3"), 1000);
    const { promise, resolve } = Promise.withResolvers<void>();
    over.addEventListener("abort", () => resolve(), { once: true });
    await Promise.race([client.gone, promise]);
    clearInterval(pongs);
    if (!over.aborted) dropped();
  }
}
