import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../../src/domain/json.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

export function forks(makeHome: MakeHome): void {
  describe("a fork", () => {
    const world = sharedWorld(makeHome);
    const counted = async (to: number): Promise<string> => {
      const session_id = await world().create("count", { agent_id: "counter", params: { to } });
      await world().untilStatus(session_id, "done");
      return session_id;
    };

    for (const [where, iteration] of [
      ["first", 0],
      ["middle", 3],
      ["last but one", 4],
    ] as const) {
      test(`from the ${where} iteration shares the history up to it and goes on by itself`, TIMEOUT, async () => {
        const parent = await counted(5);
        const before = { session: await world().session(parent), steps: await world().steps(parent) };
        const accepted = await forked(world(), parent, { iteration });
        const own = accepted.session_id;
        const session = await world().untilStatus(own, "done");
        assert.deepEqual([session.parent_session_id, session.parent_iteration], [parent, iteration]);
        assert.deepEqual([session.agent_id, session.moniker, session.params], ["counter", "count", { to: 5 }]);
        const steps = await world().steps(own);
        assert.deepEqual(steps.slice(0, iteration + 1), before.steps.slice(0, iteration + 1), "by reference");
        assert.deepEqual(
          steps.map((step) => [step.session_id, step.iteration, step.text, step.state["n"]]),
          Array.from({ length: 6 }, (_, n) => [n <= iteration ? parent : own, n, String(n), n]),
        );
        for (const [index, step] of steps.slice(1).entries())
          assert.equal(step.step_token, steps[index]?.next_step_token);
        assert.deepEqual(await world().session(parent), before.session, "the parent is as it was");
        assert.deepEqual(await world().steps(parent), before.steps);
        const action = await world().settled(accepted.action_id);
        assert.deepEqual([action.outcome, action.session_id], ["ok", own]);
        assert.equal(action.payload["parent_session_id"], parent);
      });
    }

    test("from the last iteration of an ended session goes on after it", TIMEOUT, async () => {
      const parent = await counted(2);
      const { session_id } = await forked(world(), parent, { iteration: 2 });
      await world().untilStatus(session_id, "done");
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        ["0", "1", "2", "3"],
      );
    });

    test("of a running session leaves that one to its own steps", TIMEOUT, async () => {
      const parent = await world().create("held");
      (await world().held.next(parent)).finish({ state: { shared: true } });
      const step = await world().held.next(parent);
      const { session_id } = await forked(world(), parent, { iteration: 0 });
      const own = await world().held.next(session_id);
      assert.deepEqual(own.frame, step.frame);
      assert.equal(own.context.ids.session_id, session_id);
      own.finish({ text: "the fork's" });
      step.finish({ text: "the parent's" });
      await Promise.all([world().untilIteration(parent, 1), world().untilIteration(session_id, 1)]);
      assert.deepEqual(
        (await world().steps(parent)).map(({ text }) => text),
        [null, "the parent's"],
      );
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        [null, "the fork's"],
      );
    });

    test("of a fork shares what both shared, also from before the first fork", TIMEOUT, async () => {
      const parent = await counted(4);
      const fork = (await forked(world(), parent, { iteration: 2 })).session_id;
      await world().untilStatus(fork, "done");
      for (const iteration of [1, 2, 3]) {
        const own = (await forked(world(), fork, { iteration })).session_id;
        await world().untilStatus(own, "done");
        const from = (n: number): string => (n > iteration ? own : n > 2 ? fork : parent);
        assert.deepEqual(
          (await world().steps(own)).map((step) => [step.session_id, step.text]),
          Array.from({ length: 5 }, (_, n) => [from(n), String(n)]),
        );
      }
    });

    test("with guidance has it in its first own step, and its sender a receipt", TIMEOUT, async () => {
      const parent = await counted(3);
      const { session_id } = await forked(world(), parent, { iteration: 1, guidance: { say: "hello" } });
      await world().untilStatus(session_id, "done");
      const own = (await world().steps(session_id)).filter((step) => step.session_id === session_id);
      assert.deepEqual(
        own.map(({ guidance }) => guidance),
        [[{ say: "hello" }], []],
      );
      const interrupt = (await world().actions(session_id)).find((action) => action.action_type === "agent_interrupt");
      assert.deepEqual([interrupt?.receipt, interrupt?.consumed_iteration, interrupt?.outcome], ["consumed", 2, "ok"]);
      assert.deepEqual(own[0]?.action_ids, [interrupt?.action_id]);
    });

    test("of a reactive session waits, unless it is given guidance", TIMEOUT, async () => {
      const parent = await world().create("held_reactive");
      await world().tell(parent, "a");
      (await world().held.next(parent)).finish({ state: { heard: 1 } });
      await world().untilStatus(parent, "waiting");
      const silent = (await forked(world(), parent, { iteration: 0 })).session_id;
      const spoken = (await forked(world(), parent, { iteration: 0, guidance: "b" })).session_id;
      assert.deepEqual((await world().held.next(spoken)).frame, { step: "1", state: { heard: 1 }, guidance: ["b"] });
      await world().meanwhile();
      assert.equal((await world().session(silent)).status, "waiting");
      assert.equal(world().held.started(silent), 0, "no step without guidance");
    });

    test("of a session in error leaves the error behind", TIMEOUT, async () => {
      const parent = await world().create("held");
      (await world().held.next(parent)).finish({ text: "shared" });
      (await world().held.next(parent)).fail(new StepError("no", "never", { retryable: false }));
      const before = await world().untilStatus(parent, "error");
      const { session_id } = await forked(world(), parent, { iteration: 0 });
      (await world().held.next(session_id)).finish({ text: "own" });
      const session = await world().untilIteration(session_id, 1);
      assert.deepEqual([session.status, session.last_error, session.ended_at], ["running", null, null]);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ status, text }) => [status, text]),
        [
          ["ok", "shared"],
          ["ok", "own"],
        ],
      );
      assert.deepEqual(await world().session(parent), before);
    });

    test("counts its own steps, tokens and time towards its limits", TIMEOUT, async () => {
      const moniker = world().moniker("continuous", ({ step, state }, { ids, emit }) => {
        emit({ kind: "usage", tokens: 10 });
        return { step, next_step: String(ids.iteration + 1), state, done: false };
      });
      const parent = await world().create(moniker, { options: { max_steps: 3, max_tokens: 1000 } });
      await world().untilStatus(parent, "stopped");
      const { session_id } = await forked(world(), parent, { iteration: 1 });
      const session = await world().untilStatus(session_id, "stopped");
      assert.deepEqual([session.stop_reason, session.iteration, session.tokens_used], ["max_steps", 4, 30]);
    });

    test("of a session in a conversation is not in that conversation", TIMEOUT, async () => {
      const conversation_id = await world().conversation();
      const parent = await world().create("count", { params: { to: 2 }, conversation_id });
      await world().untilStatus(parent, "done");
      const { session_id } = await forked(world(), parent, { iteration: 0 });
      await world().untilStatus(session_id, "done");
      assert.equal((await world().session(session_id)).conversation_id, null);
      const messages = await world().store.listMessages({ conversation_id, limit: 100, offset: 0 });
      assert.equal(messages.length, 3);
    });

    test("with an id of the client's is made once, however often it is asked for", TIMEOUT, async () => {
      const parent = await counted(3);
      const request = { iteration: 1, session_id: "my-fork", guidance: "once" };
      const answers = await Promise.all([1, 2, 3].map(() => forked(world(), parent, request)));
      await world().untilStatus("my-fork", "done");
      answers.push(await forked(world(), parent, request));
      for (const answer of answers) assert.deepEqual(answer, answers[0]);
      assert.equal(answers[0]?.session_id, "my-fork");
      const used = (await world().steps("my-fork")).flatMap(({ guidance }) => guidance);
      assert.deepEqual(used, ["once"]);
      assert.equal((await world().actions("my-fork")).length, 2, "the fork and its guidance");
    });

    test("with the id of a session that is no fork of this one is a conflict", TIMEOUT, async () => {
      const parent = await counted(1);
      const other = await counted(1);
      const request = { action_type: "agent_fork", session_id: parent, payload: { iteration: 0, session_id: other } };
      assert.equal((await world().runtime.queue.submit(request)).kind, "conflict");
    });

    test("from an iteration that is not there is refused, and the answer says which are", TIMEOUT, async () => {
      const parent = await counted(2);
      for (const iteration of [3, 1000]) {
        const request = { action_type: "agent_fork", session_id: parent, payload: { iteration } };
        const outcome = await world().runtime.queue.submit(request);
        assert.ok(outcome.kind === "invalid");
        assert.match(outcome.errors[0]?.message ?? "", /0 to 2/);
      }
    });
  });
}

const forked = (world: World, session_id: string, payload: JsonObject) =>
  world.submit({ action_type: "agent_fork", session_id, payload });
