import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;

export function pausing(makeHome: MakeHome): void {
  describe("pause and resume", () => {
    const world = sharedWorld(makeHome);

    test("a pause during a step keeps the step and starts no other", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      const pause = await world().do("agent_pause", session_id, { reason: "lunch" });
      assert.equal(pause.receipt, "delivered");
      assert.equal((await world().session(session_id)).status, "paused");
      step.finish({ text: "kept" });
      const session = await world().untilIteration(session_id, 0);
      assert.equal(session.status, "paused");
      assert.equal(session.ended_at, null);
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 1);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        ["kept"],
      );
    });

    test("a pause before the first step lets no step start, a resume does", TIMEOUT, async () => {
      await using narrow = await World.open(makeHome, { max_running_steps: 1 });
      const first = await narrow.create("held", { options: { max_steps: 1 } });
      const step = await narrow.held.next(first);
      const second = await narrow.create("held");
      await narrow.do("agent_pause", second);
      step.finish();
      await narrow.untilStatus(first, "stopped");
      await narrow.meanwhile();
      assert.equal(narrow.held.started(second), 0);
      assert.equal((await narrow.session(second)).iteration, -1);
      await narrow.do("agent_resume", second);
      assert.equal((await narrow.held.next(second)).frame.step, "0");
    });

    test("a resume goes on at the next token with the state that was left", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      step.finish({ next_step: "review/1", state: { kept: [1, 2] } });
      await world().untilIteration(session_id, 0);
      await world().do("agent_resume", session_id);
      const next = await world().held.next(session_id);
      assert.deepEqual(next.frame, { step: "review/1", state: { kept: [1, 2] } });
      assert.equal(next.context.ids.iteration, 1);
      assert.equal((await world().session(session_id)).status, "running");
    });

    test("a pause and a resume during one step let it go on undisturbed", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      await world().do("agent_resume", session_id);
      assert.equal(step.context.signal.aborted, false);
      step.finish();
      assert.equal((await world().held.next(session_id)).context.ids.iteration, 1);
      assert.equal(world().held.started(session_id), 2);
    });

    test(
      "a reactive session that is paused waits again when it is resumed, or uses what it was told",
      TIMEOUT,
      async () => {
        const session_id = await world().create("held_reactive");
        await world().do("agent_pause", session_id);
        await world().do("agent_resume", session_id);
        assert.equal((await world().session(session_id)).status, "waiting");
        await world().do("agent_pause", session_id);
        await world().settled(await world().tell(session_id, "later"));
        assert.equal((await world().session(session_id)).status, "paused");
        await world().meanwhile();
        assert.equal(world().held.started(session_id), 0);
        await world().do("agent_resume", session_id);
        assert.deepEqual((await world().held.next(session_id)).frame.guidance, ["later"]);
      },
    );

    test("what cannot be paused or resumed is rejected with the reason", TIMEOUT, async () => {
      const done = await world().create("count", { params: { to: 0 } });
      await world().untilStatus(done, "done");
      const stopped = await world().create("held");
      await world().do("agent_destroy", stopped);
      await world().untilStatus(stopped, "stopped");
      const failed = await world().create("count", { params: { to: 1, fail_at: 0 }, options: { retry: once } });
      await world().untilStatus(failed, "error");
      const paused = await world().create("held_reactive");
      await world().do("agent_pause", paused);
      const running = await world().create("held");
      const waiting = await world().create("held_reactive");
      const rejected = [
        ["agent_pause", done, /done/],
        ["agent_resume", done, /done/],
        ["agent_pause", stopped, /stopped/],
        ["agent_resume", stopped, /stopped/],
        ["agent_pause", failed, /error/],
        ["agent_pause", paused, /paused/],
        ["agent_resume", running, /running/],
        ["agent_resume", waiting, /waiting/],
      ] as const;
      for (const [action_type, session_id, reason] of rejected) {
        const before = await world().session(session_id);
        const action = await world().act(action_type, session_id);
        assert.equal(action.outcome, "rejected");
        assert.equal(action.processed, true);
        assert.match(action.error ?? "", reason);
        const { status, iteration } = await world().session(session_id);
        assert.deepEqual({ status, iteration }, { status: before.status, iteration: before.iteration });
      }
    });

    test("a pause ends the wait between two steps, and a resume starts the next step", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { step_interval_ms: HOUR_MS } });
      using timers = new LongTimers();
      (await world().held.next(session_id)).finish();
      await world().untilIteration(session_id, 0);
      await world().meanwhile();
      assert.equal(timers.count, 1, "it waits for the interval to pass");
      await world().do("agent_pause", session_id);
      await world().meanwhile();
      assert.equal(timers.count, 0);
      assert.equal(world().held.started(session_id), 1);
      await world().do("agent_resume", session_id);
      assert.equal((await world().held.next(session_id)).context.ids.iteration, 1);
    });

    test("a pause ends the wait before a retry, and a resume tries again", TIMEOUT, async () => {
      const retry = { max_attempts: 3, backoff_ms: HOUR_MS };
      const session_id = await world().create("held", { options: { retry } });
      using timers = new LongTimers();
      (await world().held.next(session_id)).fail(new Error("once"));
      await world().meanwhile();
      assert.equal(timers.count, 1, "it waits before it tries again");
      await world().do("agent_pause", session_id);
      await world().meanwhile();
      assert.equal(timers.count, 0);
      assert.equal(world().held.started(session_id), 1);
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish();
      await world().untilIteration(session_id, 0);
      const rows = await world().steps(session_id);
      assert.deepEqual(
        rows.map(({ status, iteration }) => [status, iteration]),
        [["ok", 0]],
      );
    });
  });

  describe("a session that rests has no timer", () => {
    const world = sharedWorld(makeHome);

    test("two hundred that wait and two hundred that are paused", TIMEOUT, async () => {
      const before = timers();
      const many = Array.from({ length: 200 });
      const waiting = await Promise.all(many.map(() => world().create("echo")));
      await Promise.all(waiting.map(async (id) => world().ended(await world().tell(id, "hello"))));
      const paused = await Promise.all(many.map(() => world().create("joke", { params: { subject: "timers" } })));
      await Promise.all(paused.map((id) => world().act("agent_pause", id)));
      await Promise.all([
        ...waiting.map((id) => world().untilStatus(id, "waiting")),
        ...paused.map((id) => world().untilStatus(id, "paused")),
      ]);
      await world().meanwhile();
      assert.ok(timers() < before + many.length / 10, "the store sets and ends timers of its own meanwhile");
    });

    const interval = { step_interval_ms: HOUR_MS };

    test("one that was paused while its step ran", TIMEOUT, async () => {
      using timers = new LongTimers();
      const session_id = await world().create("held", { options: interval });
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      step.finish();
      await world().untilIteration(session_id, 0);
      await world().meanwhile();
      assert.equal(timers.count, 0);
    });

    test("a reactive one that has answered", TIMEOUT, async () => {
      using timers = new LongTimers();
      const session_id = await world().create("echo", { options: interval });
      await world().ended(await world().tell(session_id, "hello"));
      await world().untilStatus(session_id, "waiting");
      await world().meanwhile();
      assert.equal(timers.count, 0);
    });

    test("one that is done, one that a limit stopped, one that failed", TIMEOUT, async () => {
      using timers = new LongTimers();
      const done = await world().create("count", { params: { to: 0 }, options: interval });
      await world().untilStatus(done, "done");
      const stopped = await world().create("joke", { options: { ...interval, max_steps: 1 } });
      await world().untilStatus(stopped, "stopped");
      const failed = await world().create("count", {
        params: { to: 1, fail_at: 0 },
        options: { ...interval, retry: once },
      });
      await world().untilStatus(failed, "error");
      await world().meanwhile();
      assert.equal(timers.count, 0);
    });
  });
}

const once = { max_attempts: 1, backoff_ms: 0 };

/** All active timers of this thread. */
const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;

/** Active timers of this thread that were set during this object's lifetime and are too long to be anything but a session's. */
class LongTimers implements Disposable {
  readonly #set = mock.method(globalThis, "setTimeout");
  readonly #cleared = mock.method(globalThis, "clearTimeout");

  get count(): number {
    const cleared = new Set<unknown>(this.#cleared.mock.calls.map((call) => call.arguments[0]));
    const long = this.#set.mock.calls.filter((call) => Number(call.arguments[1]) >= HOUR_MS / 2);
    return long.filter(({ result }) => !cleared.has(result)).length;
  }

  [Symbol.dispose](): void {
    this.#set.mock.restore();
    this.#cleared.mock.restore();
  }
}
