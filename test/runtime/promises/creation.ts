import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { newId, now } from "../../../src/domain/ids.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

export function creation(makeHome: MakeHome): void {
  describe("a creation", () => {
    const world = sharedWorld(makeHome);
    const count = (session_id: string, more: object = {}): object => ({
      action_type: "agent_create",
      agent_id: "counter",
      session_id,
      payload: { moniker: "count", params: { to: 2 } },
      ...more,
    });

    test("can be read as soon as it is accepted, and its action ends well", TIMEOUT, async () => {
      const accepted = await world().submit({
        ...count(newId()),
        metadata: { from: "here" },
        urgency: 4,
      });
      const session = await world().session(accepted.session_id);
      assert.equal(session.agent_id, "counter");
      assert.deepEqual(session.params, { to: 2 });
      const action = await world().settled(accepted.action_id);
      assert.equal(action.outcome, "ok");
      assert.equal(action.error, null);
      assert.equal(action.urgency, 4);
      assert.deepEqual(action.metadata, { from: "here" });
      assert.equal(action.session_id, accepted.session_id);
      assert.equal((await world().untilStatus(accepted.session_id, "done")).iteration, 2);
    });

    test("with the same ids again is answered as the first time and does nothing twice", TIMEOUT, async () => {
      const first = await world().submit(count("again"));
      const second = await world().submit(count("again"));
      await world().untilStatus("again", "done");
      const third = await world().submit(count("again"));
      assert.deepEqual([second, third], [first, first]);
      await world().settled(first.action_id);
      assert.equal((await world().store.listActions({ session_id: "again", limit: 10, offset: 0 })).length, 1);
      assert.equal((await world().steps("again")).length, 3);
    });

    test("with an id that another agent or moniker has is a conflict and changes nothing", TIMEOUT, async () => {
      await world().submit(count("taken"));
      await world().untilStatus("taken", "done");
      const before = await world().session("taken");
      const others = [
        count("taken", { agent_id: "another" }),
        count("taken", { payload: { moniker: "echo" } }),
        count("taken", { agent_id: "another", payload: { moniker: "echo" } }),
      ];
      for (const other of others) assert.equal((await world().runtime.queue.submit(other)).kind, "conflict");
      assert.deepEqual(await world().session("taken"), before);
      assert.equal((await world().store.listActions({ session_id: "taken", limit: 10, offset: 0 })).length, 1);
    });

    test("sent fifty times at once with one id makes one session", TIMEOUT, async () => {
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => world().submit(count("at-once"))));
      for (const outcome of outcomes) assert.deepEqual(outcome, outcomes[0]);
      await world().untilStatus("at-once", "done");
      assert.deepEqual(
        (await world().steps("at-once")).map(({ iteration }) => iteration),
        [0, 1, 2],
      );
      const [agent] = [await world().store.getAgent("counter")];
      assert.ok(agent);
      assert.equal((await world().store.listActions({ session_id: "at-once", limit: 10, offset: 0 })).length, 1);
    });

    test("by two agents at once with one id is one session and one conflict", TIMEOUT, async () => {
      const rivals = ["cain", "abel"].map((agent_id) => world().runtime.queue.submit(count("contested", { agent_id })));
      const outcomes = await Promise.all(rivals);
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["accepted", "conflict"]);
      const winner = outcomes[0]?.kind === "accepted" ? "cain" : "abel";
      assert.equal((await world().untilStatus("contested", "done")).agent_id, winner);
      assert.equal((await world().steps("contested")).length, 3);
    });

    test("fills in the parameters' defaults, and keeps to what the schema returns", TIMEOUT, async () => {
      const params = z.object({ size: z.int().default(3), name: z.string().trim() });
      const moniker = world().moniker("reactive", () => assert.fail("it has no guidance"), { params });
      const session_id = await world().create(moniker, { params: { name: "  ada " } });
      assert.deepEqual((await world().session(session_id)).params, { size: 3, name: "ada" });
    });

    test(
      "takes what it leaves out from the agent's configuration, then from the moniker, then from its kind",
      TIMEOUT,
      async () => {
        await world().store.commit({
          agent_configs: [
            {
              agent_id: "configured",
              moniker: "joke",
              params: { subject: "configured" },
              options: { step_interval_ms: 60_000, max_steps: 7 },
              description: null,
              updated_at: now(),
            },
          ],
        });
        const submit = async (payload: object) => {
          const request = { action_type: "agent_create", agent_id: "configured", payload };
          const session = await world().session((await world().submit(request)).session_id);
          await world().do("agent_destroy", session.session_id);
          return session;
        };
        const bare = await submit({});
        assert.equal(bare.moniker, "joke");
        assert.deepEqual(bare.params, { subject: "configured" });
        assert.deepEqual(bare.options, { stop_on_done: false, step_interval_ms: 60_000, max_steps: 7 });
        const own = await submit({ params: { subject: "own" }, options: { max_steps: 2 } });
        assert.deepEqual(own.params, { subject: "own" });
        assert.deepEqual(own.options, { stop_on_done: false, step_interval_ms: 60_000, max_steps: 2 });
        const other = await submit({ moniker: "echo" });
        assert.equal(other.moniker, "echo");
        assert.deepEqual(other.params, {}, "another moniker's parameters are not taken over");
        const unconfigured = await world().session(await world().create("joke", { agent_id: "plain" }));
        assert.deepEqual(unconfigured.options, { stop_on_done: false, step_interval_ms: 3000 });
        assert.deepEqual(unconfigured.params, { subject: "computers" });
        await world().do("agent_destroy", unconfigured.session_id);
      },
    );

    test("is reached by its agent's id alone, as the latest session", TIMEOUT, async () => {
      const older = await world().create("held", { agent_id: "double" });
      const newer = await world().create("held", { agent_id: "double" });
      const pause = await world().submit({ action_type: "agent_pause", agent_id: "double" });
      assert.equal(pause.session_id, newer);
      assert.equal((await world().settled(pause.action_id)).outcome, "ok");
      assert.equal((await world().session(newer)).status, "paused");
      assert.equal((await world().session(older)).status, "running");
      const interrupt = await world().submit({
        action_type: "agent_interrupt",
        agent_id: "double",
        payload: { guidance: "for the newer" },
      });
      await world().settled(interrupt.action_id);
      assert.deepEqual((await world().session(newer)).pending_guidance, ["for the newer"]);
      assert.deepEqual((await world().session(older)).pending_guidance, []);
    });

    test("ids with quotes, percent signs, SQL and any script are data", TIMEOUT, async () => {
      for (const id of ["o'brien", '"; drop table queue; --', "100%_", "ключ/🔑", "a|b\\c", "__proto__"]) {
        const session_id = await world().create("count", { agent_id: id, session_id: id, params: { to: 1 } });
        assert.equal(session_id, id);
        assert.equal((await world().untilStatus(id, "done")).iteration, 1);
        assert.equal((await world().store.getAgent(id))?.latest.session_id, id);
      }
    });
  });
}
