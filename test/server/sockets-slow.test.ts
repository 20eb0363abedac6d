import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../src/domain/step.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { heldMb, INSPECTABLE } from "./server-heap.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld(INSPECTABLE);

const STEPS = 3000;
const STATE_BYTES = 20_000;
/** Out of 60 MB of steps, and as much again of session rows, that the client has not read. */
const MOST_HELD_MB = 35;

/** The client's end of the connection, which can stop reading, so that the server's buffers fill up. */
const connectionOf = (watcher: Watcher): { pause(): void; resume(): void } =>
  (watcher.socket.io.engine.transport as unknown as { ws: { pause(): void; resume(): void } }).ws;

describe("a client that stops reading", () => {
  const produce = async (session_id: string, steps: number) => {
    await world().api.create("count", { session_id, params: { to: steps - 1, payload_bytes: STATE_BYTES } });
    await world().ended(session_id);
  };

  test("does not fill the server's memory, and gets everything once it reads again", TIMEOUT, async (context) => {
    const { server } = world();
    await produce("nobody listens", 300);
    const alone = await heldMb(server);
    const session_id = "somebody does not read";
    using slow = await Watcher.connect(server.url);
    await slow.follow({ session_id, after_iteration: -1 });
    connectionOf(slow).pause();
    try {
      await produce(session_id, STEPS);
      const held = (await heldMb(server)) - alone;
      context.diagnostic(`the server holds ${held.toFixed(1)} MB more for a client that does not read`);
      assert.equal(slow.events.length, 0, "the client reads nothing meanwhile");
      assert.ok(held < MOST_HELD_MB, `the server holds ${held.toFixed(1)} MB more`);
    } finally {
      connectionOf(slow).resume();
    }
    await slow.until("the last step", () => slow.of<Step>("agent_step").length === STEPS);
    const iterations = slow.of<Step>("agent_step").map(({ iteration }) => iteration);
    assert.deepEqual(
      iterations,
      Array.from({ length: STEPS }, (_, index) => index),
    );
    assert.ok(slow.of<Step>("agent_step").every(({ state }) => (state["filler"] as string).length === STATE_BYTES));
  });
});
