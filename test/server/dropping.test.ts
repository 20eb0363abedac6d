import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { pathOf, problemOf, read, SHAPES } from "./api.ts";
import { commandFor } from "./command.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const run = commandFor(() => world().server.url);

describe("DELETE /api/actions/:action_id", TIMEOUT, () => {
  const interrupt = async (session_id: string, guidance: string): Promise<string> => {
    const answer = await world().api.post(`${pathOf("sessions", session_id)}/interrupt`, { guidance });
    return read(answer, 202, z.object({ action_id: z.string() })).action_id;
  };
  const paused = async (): Promise<string> => {
    const { session_id } = await world().api.create("echo");
    await world().control(session_id, "pause");
    await world().status(session_id, "paused");
    return session_id;
  };

  test("takes back guidance that no step used, and answers the action as it ended", async () => {
    const session_id = await paused();
    const [dropped, kept] = [await interrupt(session_id, "no"), await interrupt(session_id, "yes")];
    const action = read(await world().api.delete(pathOf("actions", dropped)), 200, SHAPES.action);
    assert.deepEqual([action.action_id, action.receipt, action.consumed_iteration], [dropped, "bounced", null]);
    assert.match(action.error ?? "", /taken back/);
    await world().control(session_id, "resume");
    await world().iteration(session_id, 0);
    const [step] = await world().api.steps(session_id);
    assert.deepEqual([step?.text, step?.action_ids], ["yes", [kept]]);
  });

  test("answers 404 for an unknown action, 409 where it was used already or is no guidance", async () => {
    problemOf(await world().api.delete(pathOf("actions", "absent")), 404);
    const { session_id, action_id: created } = await world().api.create("echo");
    const used = await interrupt(session_id, "hi");
    await world().iteration(session_id, 0);
    assert.match(problemOf(await world().api.delete(pathOf("actions", used)), 409).detail, /was used by step 0/);
    assert.match(problemOf(await world().api.delete(pathOf("actions", created)), 409).detail, /carries no guidance/);
  });

  test("is everstep drop", async () => {
    const session_id = await paused();
    const dropped = await interrupt(session_id, "no");
    const ran = await run("drop", dropped);
    assert.deepEqual([ran.code, ran.stdout], [0, `${dropped} was taken back\n`], ran.stderr);
    const again = await run("drop", dropped);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /has already bounced/);
  });
});
