import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const EVERY_SECOND = "* * * * * *";
const START = { agent_id: "started", moniker: "count", params: { to: 1 } };

/** Promises of the built-in moniker `schedule`, in real time. */
export function schedules(makeHome: MakeHome): void {
  describe("a schedule", () => {
    const world = sharedWorld(makeHome);

    test("starts a session at each time, is told how it ended, and rests in between", TIMEOUT, async () => {
      const session_id = await world().create("schedule", { params: { cron: EVERY_SECOND, start: START } });
      await world().until(session_id, ({ iteration }) => iteration >= 6);
      await world().do("agent_pause", session_id);
      const steps = await world().steps(session_id);
      const started = steps.flatMap(({ data }) => (data as { started: string | null }).started ?? []);
      assert.ok(started.length >= 2, JSON.stringify(steps.map(({ text }) => text)));
      for (const id of started) {
        const child = await world().untilStatus(id, "done");
        assert.deepEqual([child.agent_id, child.moniker, child.result], ["started", "count", "1"]);
        assert.equal(child.spawned_by?.session_id, session_id);
      }
      const texts = steps.map(({ text }) => text).join("\n");
      assert.ok(texts.includes(`Run ${started[0]} ended: done.`), texts);
      await world().do("agent_destroy", session_id);
    });

    test("that was stopped with everything makes up for missed runs by one run", TIMEOUT, async () => {
      const session_id = await world().create("schedule", { params: { cron: EVERY_SECOND, start: START } });
      const { wake_at } = await world().until(session_id, ({ status }) => status === "waiting");
      await world().runtime.stop();
      const missed = Date.parse(wake_at ?? "") + 2500;
      await new Promise((resolve) => setTimeout(resolve, missed - Date.now()));
      await world().start();
      await world().until(session_id, ({ iteration }) => iteration >= 1);
      const [, second] = await world().steps(session_id);
      assert.match(second?.text ?? "", /^[3-9] runs were due since .*; this one replaces them\.\nStarted /);
      await world().do("agent_destroy", session_id);
    });

    test("whose session cannot be started ends as an error that says why", TIMEOUT, async () => {
      const start = { ...START, moniker: "nobody" };
      const session_id = await world().create("schedule", { params: { cron: EVERY_SECOND, start } });
      const { last_error } = await world().untilStatus(session_id, "error");
      assert.match(last_error ?? "", /^bad_action: actions\[0\]: moniker: no moniker is named "nobody"/);
    });
  });
}
