import { join } from "node:path";
import { ENCRYPTION } from "../../test/matrix/encrypted-room.ts";
import { Scene } from "../../test/matrix/scene.ts";
import { SynapseProcess } from "../../test/matrix/synapse/synapse-process.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { startEverstep } from "../server/everstep-process.ts";
import { summarize } from "../stats.ts";
import { residentMegabytes, roundTripMs } from "./round-trip.ts";

const WARM_UP = 10;
const ROOMS = 20;

/** The same person writes to the same bot, alternating between a plain and an encrypted room; then in twenty encrypted rooms. */
export async function measureEncryption({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using synapse = await SynapseProcess.start();
  await using server = await startEverstep(join(folder, "encryption"));
  await using scene = new Scene(synapse.url);
  const address = `127.0.0.1:${server.port}`;
  const bot = await scene.bot({ AGENT_WS_URL: `ws://${address}/agent_ws/`, AGENT_BASE_URL: `http://${address}` });
  const anna = await scene.person("anna", { encrypts: true });
  const others = [bot.user_id];
  const openEncrypted = () => anna.openRoom(others, others, { initial_state: [ENCRYPTION] });
  const rooms = { plain: await anna.openRoom(others), encrypted: await openEncrypted() };
  const times = { plain: [] as number[], encrypted: [] as number[] };
  for (let index = -WARM_UP; index < (quick ? 40 : 150); index++)
    for (const name of ["plain", "encrypted"] as const) {
      const ms = await roundTripMs(anna, rooms[name], `q${index + WARM_UP}`);
      if (index >= 0) times[name].push(ms);
    }
  for (let index = 1; index < ROOMS; index++) await roundTripMs(anna, await openEncrypted(), `room${index}`);
  const resident = await residentMegabytes(bot.pid);
  const [plain, encrypted] = [summarize(times.plain), summarize(times.encrypted)];
  return [
    { figure: "message to first reply in a plain room, p50", measured: plain.p50, unit: "ms", bar: null },
    { figure: "message to first reply in an encrypted room, p50", measured: encrypted.p50, unit: "ms", bar: null },
    { figure: "encrypted to plain, p50", measured: encrypted.p50 / plain.p50, unit: "times", bar: atMost(1.3) },
    {
      figure: `the bot's resident memory with ${ROOMS} encrypted rooms`,
      measured: resident,
      unit: "MB",
      bar: below(150),
    },
  ];
}
