import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { JsonObject, JsonValue } from "../../../src/domain/json.ts";
import type { FrameAction, FrameOut } from "../../../src/domain/step-frame.ts";
import { repetitions } from "../../repetitions.ts";
import { scratchFolder } from "../../store/scratch-folder.ts";
import { seededRandom, seedFrom } from "../../store/seeded-random.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";
import { RuntimeProcess } from "../runtime-process.ts";

const CHILDREN = repetitions("EVERSTEP_CHILDREN", { few: 30, many: 500 });
const KILLS = repetitions("EVERSTEP_CHILD_KILLS", { few: 2, many: 20 });

const childOf = (guidance: JsonValue): JsonObject => (guidance as { child: JsonObject }).child;

/** What a frame's actions do, and what happens to sessions that a step started. */
export function children(makeHome: MakeHome): void {
  describe("a frame's actions", () => {
    const world = sharedWorld(makeHome);

    const act = async (actions: FrameAction[], out: Partial<FrameOut> = { wait: {} }): Promise<string> => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ actions, ...out });
      return session_id;
    };

    test("create children with ids of their own, and tell the parent once how each ended", TIMEOUT, async () => {
      const parent = await act([
        { action_type: "agent_create", moniker: "count", params: { to: 2 } },
        { action_type: "agent_create", agent_id: "other", payload: { moniker: "held_finite" } },
        {
          action_type: "agent_create",
          session_id: `named of ${Date.now()}`,
          moniker: "count",
          params: { to: 9, fail_at: 0 },
          options: { retry: { max_attempts: 1, backoff_ms: 0 } },
        },
      ]);
      await world().untilIteration(parent, 0);
      const rows = await world().store.listSessions({ spawned_by: parent, limit: 10, offset: 0 });
      const [failing, other, counting] = rows;
      assert.ok(failing && other && counting && rows.length === 3);
      assert.deepEqual([counting.session_id, other.session_id], [`${parent}.0.0`, `${parent}.0.1`]);
      assert.deepEqual(counting.spawned_by, { session_id: parent, iteration: 0 });
      assert.deepEqual([counting.agent_id, other.agent_id, other.parent_session_id], ["agent", "other", null]);
      const seen: JsonObject[] = [];
      const hear = async (): Promise<void> => {
        const step = await world().held.next(parent);
        seen.push(...(step.frame.guidance ?? []).map(childOf));
        step.finish({ wait: {} });
      };
      while (seen.length < 2) await hear();
      (await world().held.next(other.session_id)).finish({ done: true, data: { found: 7 } });
      while (seen.length < 3) await hear();
      const byId = new Map(seen.map((child) => [child["session_id"], child]));
      assert.deepEqual(byId.get(counting.session_id), {
        session_id: counting.session_id,
        agent_id: "agent",
        status: "done",
        stop_reason: null,
        result: "2",
        error: null,
      });
      assert.deepEqual(byId.get(other.session_id)?.["result"], { found: 7 });
      const failed = byId.get(failing.session_id);
      assert.deepEqual([failed?.["status"], typeof failed?.["error"]], ["error", "string"]);
      await world().meanwhile();
      assert.equal((await world().session(parent)).status, "waiting", "nothing is told twice");
      const reports = (await world().actions(parent)).filter(({ action_type }) => action_type === "agent_input");
      assert.deepEqual(
        reports.map(({ receipt }) => receipt),
        ["consumed", "consumed", "consumed"],
      );
    });

    test("reach other sessions, those of the same frame, and the session itself", TIMEOUT, async () => {
      const other = await world().create("held_reactive");
      const parent = await act([
        { action_type: "agent_interrupt", session_id: other, payload: { guidance: "hello" } },
        { action_type: "agent_create", session_id: `${other} child`, moniker: "held_reactive" },
        { action_type: "agent_input", session_id: `${other} child`, payload: { text: "first word" } },
        { action_type: "agent_pause" },
      ]);
      const heard = await world().held.next(other);
      assert.deepEqual(heard.frame.guidance, ["hello"]);
      const child = await world().held.next(`${other} child`);
      assert.deepEqual(child.frame.guidance, [{ text: "first word" }]);
      await world().untilStatus(parent, "paused");
      const [action] = await world().actions(other);
      assert.deepEqual(action?.metadata, { sent_by: { session_id: parent, iteration: 0 } });
    });

    test("that cannot be done fail the step, and nothing of the frame is written", TIMEOUT, async () => {
      const taken = await world().create("echo", { session_id: `taken ${Date.now()}` });
      for (const [action, reason] of [
        [{ action_type: "agent_create", moniker: "no such" }, /actions\[1\]: moniker/],
        [{ action_type: "agent_create", moniker: "count", params: { to: "x" } }, /actions\[1\]: params\.to/],
        [{ action_type: "agent_pause", session_id: "nobody" }, /actions\[1\]: the session is unknown/],
        [
          { action_type: "agent_create", session_id: taken, moniker: "count", params: { to: 1 } },
          /another agent or moniker/,
        ],
        [{ action_type: "agent_answer", session_id: taken, payload: { answer: 1 } }, /no open question/],
      ] as [FrameAction, RegExp][]) {
        const fine: FrameAction = { action_type: "agent_create", moniker: "count", params: { to: 1 } };
        const parent = await act([fine, action]);
        const { last_error, iteration } = await world().untilStatus(parent, "error");
        assert.match(last_error ?? "", /^bad_action: /);
        assert.match(last_error ?? "", reason);
        assert.equal(iteration, -1);
        assert.deepEqual(await world().store.listSessions({ spawned_by: parent, limit: 5, offset: 0 }), []);
      }
    });

    test("that name an existing child leave it as it is", TIMEOUT, async () => {
      const session_id = `worker ${Date.now()}`;
      const ensure: FrameAction = { action_type: "agent_create", session_id, moniker: "held_reactive" };
      const first = await act([ensure], {});
      (await world().held.next(first)).finish({ actions: [ensure], wait: {} });
      const { status } = await world().untilStatus(first, "waiting", "error");
      assert.equal(status, "waiting");
      const created = (await world().actions(session_id)).filter(({ action_type }) => action_type === "agent_create");
      assert.equal(created.length, 1);
    });

    test(
      "a destroyed parent takes its live children along, and theirs, except those that outlive it",
      TIMEOUT,
      async () => {
        const parent = await act([
          { action_type: "agent_create", moniker: "held" },
          { action_type: "agent_create", moniker: "held", options: { outlives_parent: true } },
          { action_type: "agent_create", moniker: "count", params: { to: 0 } },
        ]);
        const [child, outliving, done] = [0, 1, 2].map((n) => `${parent}.0.${n}`) as [string, string, string];
        await world().untilStatus(done, "done");
        (await world().held.next(child)).finish({
          actions: [{ action_type: "agent_create", moniker: "echo" }],
          wait: {},
        });
        await world().untilStatus(child, "waiting");
        await world().do("agent_destroy", parent);
        for (const id of [parent, child, `${child}.0.0`]) {
          const { stop_reason } = await world().untilStatus(id, "stopped");
          assert.equal(stop_reason, "destroyed");
        }
        assert.equal((await world().session(outliving)).status, "running");
        assert.equal((await world().session(done)).status, "done");
        // Its end is reported to a session that has ended, so the guidance bounces.
        const bounced = (await world().actions(parent)).filter(({ payload }) =>
          JSON.stringify(payload).includes(child),
        );
        for (const { action_id } of bounced) assert.equal((await world().ended(action_id)).receipt, "bounced");
        assert.equal(bounced.length, 1);
      },
    );
  });
}

/** The same under kills. */
export function childrenUnderKills(makeHome: MakeHome): void {
  test(`each of ${CHILDREN} children is heard of once, over ${KILLS} kills`, { timeout: 3_600_000 }, async (t) => {
    const random = seededRandom(seedFrom("EVERSTEP_CHILD_SEED"));
    await using workspace = await scratchFolder();
    const home = await makeHome();
    const order = { url: home.url, workspace: workspace.path };
    const session_id = "parent";
    for (let kill = 0; kill < KILLS; kill += 1) {
      await using process = new RuntimeProcess(order);
      await process.ready();
      const payload = { moniker: "fan_out", params: { children: CHILDREN } };
      if (kill === 0) await process.submit({ action_type: "agent_create", agent_id: "a", session_id, payload });
      await pause(50 + random.integer(400));
      await process.kill();
    }
    await using last = new RuntimeProcess(order);
    await last.ended(session_id);
    await last.stop();
    await using world = await World.open(async () => home);
    const { status, context } = await world.session(session_id);
    assert.equal(status, "done", JSON.stringify(context).slice(0, 1000));
    const heard = (await world.steps(session_id)).flatMap(({ guidance }) =>
      guidance.map((report) => childOf(report)["session_id"] as string),
    );
    const expected = Array.from({ length: CHILDREN }, (_, n) => `${session_id}.${Math.floor(n / 10)}.${n % 10}`);
    assert.deepEqual(heard.toSorted(), expected.toSorted());
    t.diagnostic(`${heard.length} children, ${KILLS} kills`);
  });
}
