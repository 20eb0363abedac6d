import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

const QUICK_RETRY = { max_attempts: 3, backoff_ms: 1 };

export function errors(makeHome: MakeHome): void {
  describe("a step that fails", () => {
    const world = sharedWorld(makeHome);

    test("is retried, and leaves no trace if that helps", TIMEOUT, async () => {
      const session_id = await world().create("count", {
        params: { to: 3, fail_at: 1, fail_times: 2 },
        options: { retry: QUICK_RETRY },
      });
      const session = await world().untilStatus(session_id, "done", "error");
      assert.deepEqual([session.status, session.last_error], ["done", null]);
      assert.deepEqual(await rows(world(), session_id), ["ok 0", "ok 1", "ok 2", "ok 3"]);
    });

    test(
      "permanently leaves an error row, status error and last_error, and uses up no iteration",
      TIMEOUT,
      async () => {
        const session_id = await world().create("held", { options: { retry: QUICK_RETRY } });
        (await world().held.next(session_id)).finish({ state: { n: 1 }, next_step: "one" });
        for (let attempt = 0; attempt < 3; attempt += 1)
          (await world().held.next(session_id)).fail(new Error(`attempt ${attempt}`));
        const session = await world().untilStatus(session_id, "error");
        assert.equal(session.iteration, 0);
        assert.equal(session.next_step_token, "one");
        assert.deepEqual(session.context, { n: 1 });
        assert.match(session.last_error ?? "", /attempt 2/);
        assert.deepEqual(await rows(world(), session_id), ["ok 0", "error 1"]);
        const [failed] = await world().store.listSteps({ session_id, status: "error", limit: 5, offset: 0 });
        assert.equal(failed?.step_token, "one");
        assert.match(failed?.error ?? "", /attempt 2/);
        assert.deepEqual(failed?.state, { n: 1 });
        await world().meanwhile();
        assert.equal(world().held.started(session_id), 4, "three attempts by default, then none");
      },
    );

    test(
      "is tried again by a resume, with as many attempts as before, and iterations stay without gaps",
      TIMEOUT,
      async () => {
        const session_id = await world().create("held_finite", { options: { retry: QUICK_RETRY } });
        for (let round = 0; round < 2; round += 1) {
          for (let attempt = 0; attempt < 3; attempt += 1)
            (await world().held.next(session_id)).fail(new Error(`round ${round}`));
          await world().untilStatus(session_id, "error");
          await world().do("agent_resume", session_id);
          assert.equal((await world().session(session_id)).last_error, null);
        }
        (await world().held.next(session_id)).finish();
        (await world().held.next(session_id)).finish({ done: true });
        await world().untilStatus(session_id, "done");
        assert.deepEqual(await rows(world(), session_id), ["error 0", "error 0", "ok 0", "ok 1"]);
      },
    );

    test("waits longer before each attempt", TIMEOUT, async () => {
      const times: number[] = [];
      const moniker = world().moniker("finite", () => {
        times.push(performance.now());
        throw new Error("never");
      });
      const session_id = await world().create(moniker, { options: { retry: { max_attempts: 4, backoff_ms: 40 } } });
      await world().untilStatus(session_id, "error");
      const waits = times.slice(1).map((time, index) => time - (times[index] as number));
      assert.equal(waits.length, 3);
      // Jitter leaves at least half of the backoff, and the backoff doubles.
      for (const [index, least] of [20, 40, 80].entries())
        assert.ok((waits[index] as number) >= least - 2, `waited ${waits.join(", ")} ms`);
    });

    test("waits as long as its error asks for", TIMEOUT, async () => {
      const times: number[] = [];
      const moniker = world().moniker("finite", ({ step, state }) => {
        times.push(performance.now());
        if (times.length === 1) throw new StepError("busy", "later", { retryable: true, retry_after_ms: 150 });
        return { step, next_step: "1", state, done: true };
      });
      const session_id = await world().create(moniker, { options: { retry: QUICK_RETRY } });
      await world().untilStatus(session_id, "done");
      const [first = 0, second = 0] = times;
      assert.ok(second - first >= 148, `waited ${second - first} ms`);
    });

    test("and says that trying again cannot help is not tried again", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { retry: QUICK_RETRY } });
      const wrongKey = new StepError("wrong_key", "the key is not known", { retryable: false });
      (await world().held.next(session_id)).fail(wrongKey);
      const session = await world().untilStatus(session_id, "error");
      assert.equal(session.last_error, "wrong_key: the key is not known");
      assert.equal(world().held.started(session_id), 1);
    });

    test("with max_attempts 1 is not tried again", TIMEOUT, async () => {
      const retry = { max_attempts: 1, backoff_ms: 1 };
      const session_id = await world().create("held", { options: { retry } });
      (await world().held.next(session_id)).fail(new Error("once"));
      await world().untilStatus(session_id, "error");
      assert.equal(world().held.started(session_id), 1);
    });

    test("while its session is paused leaves it paused, and is tried again by the resume", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { retry: QUICK_RETRY } });
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      step.fail(new Error("once"));
      await world().meanwhile();
      assert.equal((await world().session(session_id)).status, "paused");
      assert.equal(world().held.started(session_id), 1);
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish();
      await world().untilIteration(session_id, 0);
      assert.deepEqual(await rows(world(), session_id), ["ok 0"]);
    });

    const strange: [string, unknown][] = [
      ["undefined", undefined],
      ["null", null],
      ["a string", "plain words"],
      ["an object that has no text", Object.create(null)],
      [
        "an object whose text throws",
        {
          toString() {
            throw new Error("no");
          },
        },
      ],
      ["a symbol", Symbol("sign")],
      ["a bigint", 7n],
      ["an error of a megabyte", new Error("x".repeat(1_000_000))],
    ];
    for (const [what, thrown] of strange) {
      for (const how of ["throws", "rejects with"] as const) {
        test(`and ${how} ${what} fails like any other`, TIMEOUT, async () => {
          const moniker = world().moniker("finite", () => {
            if (how === "throws") throw thrown;
            // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- that is the case under test
            return Promise.reject(thrown);
          });
          const session_id = await world().create(moniker, { options: { retry: { max_attempts: 2, backoff_ms: 1 } } });
          const session = await world().untilStatus(session_id, "error");
          assert.ok((session.last_error ?? "").length > 0, "the reason is told");
          assert.ok((session.last_error ?? "").length < 20_000, "the reason is of a bounded size");
          assert.deepEqual(await rows(world(), session_id), ["error 0"]);
          await world().do("agent_destroy", session_id);
        });
      }
    }
  });
}

async function rows(world: World, session_id: string): Promise<string[]> {
  return (await world.steps(session_id)).map(({ status, iteration }) => `${status} ${iteration}`);
}
