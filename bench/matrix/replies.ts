import { join } from "node:path";
import { Scene } from "../../test/matrix/scene.ts";
import { SynapseProcess } from "../../test/matrix/synapse/synapse-process.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { Child } from "../runtime/child.ts";
import { startEverstep } from "../server/everstep-process.ts";
import { summarize } from "../stats.ts";
import type { BareBotMessage } from "./bare-bot-process.ts";
import { residentMegabytes, roundTripMs } from "./round-trip.ts";

const WARM_UP = 10;

/**
 * The same person writes to three bots in turn on the same homeserver: a bare script, the bot with a mock, the bot with an
 * agent.
 */
export async function measureReplies({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using synapse = await SynapseProcess.start();
  await using server = await startEverstep(join(folder, "replies"));
  await using scene = new Scene(synapse.url);
  const account = await scene.person("bare", { follows: false });
  const { user_id, access_token } = account;
  await using bare = new Child<BareBotMessage>("../matrix/bare-bot-process.ts", [
    synapse.url,
    user_id,
    access_token,
    account.client.getDeviceId() ?? "",
  ]);
  await bare.next();
  const address = `127.0.0.1:${server.port}`;
  const bot = await scene.bot({ AGENT_WS_URL: `ws://${address}/agent_ws/`, AGENT_BASE_URL: `http://${address}` });
  const mocked = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
  const anna = await scene.person("anna");
  const rooms = {
    bare: await anna.openRoom([user_id]),
    mock: await anna.openRoom([mocked.user_id]),
    agent: await anna.openRoom([bot.user_id]),
  };
  const times = { bare: [] as number[], mock: [] as number[], agent: [] as number[] };
  for (let index = -WARM_UP; index < (quick ? 40 : 150); index++)
    for (const name of ["bare", "mock", "agent"] as const) {
      const ms = await roundTripMs(anna, rooms[name], `q${index + WARM_UP}`);
      if (index >= 0) times[name].push(ms);
    }
  const [bareTimes, mock, agent] = [summarize(times.bare), summarize(times.mock), summarize(times.agent)];
  const resident = await residentMegabytes(bot.pid);
  return [
    { figure: "message to first reply, a bare script, p50", measured: bareTimes.p50, unit: "ms", bar: null },
    { figure: "message to first reply, the bot with a mock, p50", measured: mock.p50, unit: "ms", bar: null },
    { figure: "message to first reply, the bot with an agent, p50", measured: agent.p50, unit: "ms", bar: null },
    { figure: "message to first reply, the bot with an agent, p99", measured: agent.p99, unit: "ms", bar: null },
    {
      figure: "what the bot and its agent add to the bare script, p50",
      measured: agent.p50 - bareTimes.p50,
      unit: "ms",
      bar: atMost(40),
    },
    { figure: "the bot's resident memory after that", measured: resident, unit: "MB", bar: below(200) },
  ];
}
