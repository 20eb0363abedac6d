import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { DeafClient } from "../agent-ws/deaf-client.ts";
import { within } from "../within.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { heldMb, INSPECTABLE } from "./server-heap.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const SOCKET_IO = "/socket.io/?EIO=4&transport=websocket";
const STATE_BYTES = 200_000;
const STEPS = 400;
/** Out of 160 MB of events meant for each reader. */
const MOST_HELD_MB = 60;

/** Subscribes to everything and reads nothing, but keeps sending pongs. */
async function neverReading(url: string): Promise<DeafClient & AsyncDisposable> {
  const client = await DeafClient.open(url, SOCKET_IO);
  await client.hear("0{");
  await client.send("40");
  await client.hear("40{");
  await client.send(`420["subscribe",{"all":true}]`);
  await client.hear("430[");
  const pongs = setInterval(() => void client.send("3"), 100);
  return Object.assign(client, { [Symbol.asyncDispose]: async () => clearInterval(pongs) });
}

describe("subscribers that never read", () => {
  const world = sharedWorld({ ...INSPECTABLE, EVERSTEP_SLOW_READER_S: "2" });
  const produce = async (steps: number) => {
    const params = { to: steps - 1, payload_bytes: STATE_BYTES };
    await world().ended((await world().api.create("count", { params })).session_id);
  };

  test("are dropped, and neither fill the memory nor hold up those who read", TIMEOUT, async (context) => {
    const { server } = world();
    await produce(20);
    const alone = await heldMb(server);
    await using stack = new AsyncDisposableStack();
    const deaf = await Promise.all(Array.from({ length: 5 }, () => neverReading(server.url)));
    for (const one of deaf) stack.use(one);
    const session_id = "somebody reads";
    using reading = await Watcher.connect(server.url);
    await reading.follow({ session_id, after_iteration: -1 });
    await world().api.create("count", { session_id, params: { to: STEPS - 1, payload_bytes: STATE_BYTES } });
    await reading.until("the last step", () => reading.of("agent_step").length === STEPS);
    const held = (await heldMb(server)) - alone;
    context.diagnostic(`the server holds ${held.toFixed(1)} MB more`);
    assert.ok(held < MOST_HELD_MB, `the server holds ${held.toFixed(1)} MB more`);
    await within(60_000, Promise.all(deaf.map(({ gone }) => gone)), () => "some are still there, kept by their pongs");
    assert.ok((await heldMb(server)) - alone < MOST_HELD_MB / 2);
  });

  test("learn the reason if they read on in time", TIMEOUT, async () => {
    const { server, api } = world();
    using slow = await Watcher.connect(server.url);
    await slow.follow({ all: true });
    const connection = (slow.socket.io.engine.transport as unknown as { ws: { pause(): void; resume(): void } }).ws;
    connection.pause();
    const { session_id } = await api.create("count", { params: { to: 1_000_000, payload_bytes: STATE_BYTES } });
    await world().iteration(session_id, 200);
    connection.resume();
    const reason = await slow.until("why", () => slow.of<{ code: string; message: string }>("error")[0]);
    assert.equal(reason.code, "reader_too_slow");
    assert.match(reason.message, /follow again from the last iteration/);
    await world().control(session_id, "destroy");
  });

  test("are dropped after the time limit even if little waits for them", TIMEOUT, async () => {
    const { server } = world();
    await using deaf = await neverReading(server.url);
    // Slowly enough that the time limit is reached before the size limit.
    for (let round = 0; round < 20 && !deaf.isGone; round += 1) {
      await produce(5);
      await wait(500);
    }
    await within(60_000, deaf.gone, () => "it is still there, kept by its pongs");
  });
});
