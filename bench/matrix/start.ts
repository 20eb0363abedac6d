import { BotProcess } from "../../test/matrix/bot-process.ts";
import { Scene } from "../../test/matrix/scene.ts";
import { SynapseProcess } from "../../test/matrix/synapse/synapse-process.ts";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";

export async function measureBotStart({ quick }: BenchContext): Promise<Figure[]> {
  await using synapse = await SynapseProcess.start();
  await using scene = new Scene(synapse.url);
  const fresh: number[] = [];
  const again: number[] = [];
  for (let round = 0; round < (quick ? 3 : 8); round++) {
    const { user_id, access_token } = await scene.person("bot", { follows: false });
    const begun = performance.now();
    await using bot = await BotProcess.start({
      MATRIX_HOMESERVER: synapse.url,
      MATRIX_USER_ID: user_id,
      MATRIX_ACCESS_TOKEN: access_token,
      MATRIX_ALLOWED_USERS: "*",
      MATRIX_PLATFORM_BACKEND: "mock",
    });
    fresh.push(performance.now() - begun);
    const anna = await scene.person("anna");
    const room = await anna.openRoom([bot.user_id]);
    await anna.ask(room, "one", /You said: one/);
    await bot.kill();
    const restarted = performance.now();
    await bot.start();
    again.push(performance.now() - restarted);
  }
  return [
    {
      figure: "a fresh bot follows its homeserver, longest",
      measured: summarize(fresh).max,
      unit: "ms",
      bar: below(2000),
    },
    { figure: "a killed bot follows its homeserver again, p50", measured: summarize(again).p50, unit: "ms", bar: null },
    {
      figure: "a killed bot follows its homeserver again, longest",
      measured: summarize(again).max,
      unit: "ms",
      bar: below(2000),
    },
  ];
}
