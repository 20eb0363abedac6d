import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import type { Step } from "../../src/domain/step.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

const STEPS = 3000;
const STATE_BYTES = 20_000;
/** Far below what is produced (60 MB of steps, as much again of session rows), far above the noise of a busy heap. */
const MOST_GROWTH_MB = 45;

/** The client's end of the connection stops reading, so that the server's fills up. */
const connectionOf = (watcher: Watcher): { pause(): void; resume(): void } =>
  (watcher.socket.io.engine.transport as unknown as { ws: { pause(): void; resume(): void } }).ws;

describe("a client that stops reading", () => {
  const residentMb = async () => {
    const status = await readFile(`/proc/${world().server.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  };
  /** Runs a session of 60 MB to its end; answers the most memory that the server had meanwhile. */
  const produce = async (session_id: string) => {
    let peak = 0;
    let running = true;
    const watching = (async () => {
      while (running) {
        peak = Math.max(peak, await residentMb());
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    await world().api.create("count", { session_id, params: { to: STEPS - 1, payload_bytes: STATE_BYTES } });
    await world().ended(session_id);
    running = false;
    await watching;
    return peak;
  };

  test("does not fill the server's memory, and gets everything once it reads again", TIMEOUT, async (context) => {
    const alone = await produce("nobody listens");
    const session_id = "somebody does not";
    using slow = await Watcher.connect(world().server.url);
    await slow.follow({ session_id, after_iteration: -1 });
    connectionOf(slow).pause();
    const paused = await produce(session_id);
    context.diagnostic(`${alone.toFixed()} MB without a listener, ${paused.toFixed()} MB with one that does not read`);
    assert.equal(slow.told.length, 0, "the client reads nothing meanwhile");
    assert.ok(paused - alone < MOST_GROWTH_MB, `the server grew from ${alone.toFixed()} to ${paused.toFixed()} MB`);

    connectionOf(slow).resume();
    await slow.until("the last step", () => slow.of<Step>("agent_step").length === STEPS);
    const iterations = slow.of<Step>("agent_step").map(({ iteration }) => iteration);
    assert.deepEqual(iterations, Array.from({ length: STEPS }, (_, index) => index));
    assert.ok(slow.of<Step>("agent_step").every(({ state }) => String(state["filler"]).length === STATE_BYTES));
  });
});
