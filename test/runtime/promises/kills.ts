import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isHeld } from "../../../src/domain/session.ts";
import { scratchFolder } from "../../store/scratch-folder.ts";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";
import { RuntimeProcess } from "../runtime-process.ts";

const HOUR_MS = 3_600_000;

/** What holds for a runtime in a separate process that is killed or exits. */
export function kills(makeHome: MakeHome): void {
  describe("a process that is killed", () => {
    test("after it accepted guidance leaves it to exactly one step of the next", TIMEOUT, async () => {
      await using workspace = await scratchFolder();
      const home = await makeHome();
      const order = { url: home.url, workspace: workspace.path };
      const sent: { action_id: string; said: number }[] = [];
      const session_id = "listener";
      for (let round = 0; round < 4; round += 1) {
        await using process = new RuntimeProcess(order);
        await process.ready();
        const create = { action_type: "agent_create", agent_id: "a", session_id, payload: { moniker: "echo" } };
        if (round === 0) await process.submit(create);
        const tell = (said: number) =>
          process.submit({ action_type: "agent_interrupt", session_id, payload: { guidance: said } });
        for (let said = round * 3; said < round * 3 + 3; said += 1)
          sent.push({ said, action_id: (await tell(said)).action_id });
        await process.kill();
      }
      await using world = await World.open(async () => home);
      // After too many kills before a step could end, the session is held; nothing is lost then either.
      if (isHeld(await world.session(session_id))) await world.do("agent_resume", session_id);
      for (const { action_id } of sent) assert.equal((await world.ended(action_id)).receipt, "consumed");
      const steps = await world.steps(session_id);
      assert.deepEqual(
        steps.flatMap(({ guidance }) => guidance),
        sent.map(({ said }) => said),
      );
      for (const { action_id } of sent) {
        const { consumed_iteration } = await world.settled(action_id);
        assert.ok(steps.find(({ iteration }) => iteration === consumed_iteration)?.action_ids.includes(action_id));
      }
    });

    test("while its step has guidance leaves it to the step that runs again", TIMEOUT, async () => {
      await using workspace = await scratchFolder();
      const home = await makeHome();
      await using process = new RuntimeProcess({ url: home.url, workspace: workspace.path });
      const payload = { moniker: "stuck_reactive" };
      const { session_id } = await process.submit({ action_type: "agent_create", agent_id: "a", payload });
      const interrupt = { action_type: "agent_interrupt", session_id, payload: { guidance: "a" } };
      const { action_id } = await process.submit(interrupt);
      await process.reported((report) => report.kind === "started" && report.guidance.includes("a"));
      const now = { action_type: "agent_interrupt", session_id, payload: { guidance: "b", mode: "now" } };
      const hurried = await process.submit(now);
      await process.reported((report) => report.kind === "started" && report.guidance.includes("b"));
      await process.kill();
      await using world = await World.open(async () => home);
      assert.equal((await world.untilStatus(session_id, "error")).last_error?.includes("unknown_moniker"), true);
      const reactive = world.catalog.get("held_reactive");
      assert.ok(reactive);
      world.catalog.set("stuck_reactive", { ...reactive, name: "stuck_reactive" });
      await world.restart();
      await world.do("agent_resume", session_id);
      const step = await world.held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["a", "b"]);
      step.finish();
      for (const id of [action_id, hurried.action_id]) assert.equal((await world.ended(id)).consumed_iteration, 0);
    });

    test("in the grace of a destroy leaves a session that is stopped by the next", TIMEOUT, async () => {
      await using workspace = await scratchFolder();
      const home = await makeHome();
      const order = { url: home.url, workspace: workspace.path, destroy_grace_ms: HOUR_MS };
      await using process = new RuntimeProcess(order);
      const create = { action_type: "agent_create", agent_id: "a", payload: { moniker: "stuck" } };
      const { session_id } = await process.submit(create);
      await process.reported((report) => report.kind === "started" && report.session_id === session_id);
      const destroy = await process.submit({ action_type: "agent_destroy", session_id });
      await process.reported((report) => report.kind === "status" && report.status === "stopping");
      await process.kill();
      await using world = await World.open(async () => home);
      const session = await world.untilStatus(session_id, "stopped");
      assert.deepEqual([session.stop_reason, session.iteration], ["destroyed", -1]);
      assert.equal((await world.settled(destroy.action_id)).outcome, "ok");
      assert.deepEqual(await world.steps(session_id), []);
    });

    test("leaves its readers a cursor from which they miss nothing", TIMEOUT, async () => {
      await using workspace = await scratchFolder();
      const home = await makeHome();
      await using process = new RuntimeProcess({ url: home.url, workspace: workspace.path });
      const payload = { moniker: "count", params: { to: 400, delay_ms: 1 } };
      const { session_id } = await process.submit({ action_type: "agent_create", agent_id: "a", payload });
      await process.reported((report) => report.kind === "step" && report.iteration === 30);
      await process.kill();
      const seen = process.iterationsOf(session_id);
      await using world = await World.open(async () => home);
      const leaving = new AbortController();
      const topic = { session_id, after_iteration: seen.at(-1) ?? -1 };
      for await (const event of world.runtime.events.follow(topic, leaving.signal)) {
        if (event.kind !== "step") continue;
        seen.push(event.step.iteration);
        if (event.step.iteration === 400) break;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 401 }, (_, index) => index),
      );
    });
  });

  describe("a process that stops", () => {
    test("ends by itself: nothing is left that keeps it alive", TIMEOUT, async () => {
      await using workspace = await scratchFolder();
      const home = await makeHome();
      const order = { url: home.url, workspace: workspace.path, shutdown_grace_ms: 10, destroy_grace_ms: HOUR_MS };
      await using process = new RuntimeProcess(order);
      const create = (moniker: string, params: object, options: object) =>
        process.submit({ action_type: "agent_create", agent_id: "a", payload: { moniker, params, options } });
      const interval = { step_interval_ms: HOUR_MS, max_runtime_s: 3600, step_timeout_s: 3600 };
      await create("echo", {}, interval);
      const joke = await create("joke", {}, interval);
      await process.reported((report) => report.kind === "step" && report.session_id === joke.session_id);
      const paused = await create("joke", {}, interval);
      await process.submit({ action_type: "agent_pause", session_id: paused.session_id });
      await process.reported((report) => report.kind === "status" && report.status === "paused");
      await create("count", { to: 9, fail_at: 0 }, { retry: { max_attempts: 9, backoff_ms: HOUR_MS } });
      const stuck = await create("stuck", {}, interval);
      const doomed = await create("stuck", {}, interval);
      for (const { session_id } of [stuck, doomed])
        await process.reported((report) => report.kind === "started" && report.session_id === session_id);
      await process.submit({ action_type: "agent_destroy", session_id: doomed.session_id });
      await process.reported((report) => report.kind === "status" && report.status === "stopping");
      await process.stop();
      await using world = await World.open(async () => home);
      assert.equal((await world.session(stuck.session_id)).iteration, -1);
      assert.equal((await world.untilStatus(doomed.session_id, "stopped")).stop_reason, "destroyed");
      assert.equal((await world.session(paused.session_id)).status, "paused");
    });
  });
}
