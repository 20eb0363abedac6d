import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FrameIn, FrameOut } from "../../../src/domain/step-frame.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;
const down = (retry_after_ms?: number): StepError =>
  new StepError("provider_down", "nobody answers", { retryable: true, outage: true, retry_after_ms });
const done = ({ step, state }: FrameIn): FrameOut => ({ step, next_step: step, state, text: "Back.", done: true });

/** What a session does while something that its step needs is unreachable. */
export function outages(makeHome: MakeHome): void {
  describe("a step whose provider is down", () => {
    const world = sharedWorld(makeHome);
    /** A moniker that fails with these errors, one after another, and then is done. */
    const failing = (...failures: (Error | (() => Error))[]) => {
      let calls = 0;
      const name = world().moniker("finite", (frame) => {
        const failure = failures[calls++];
        if (failure) throw typeof failure === "function" ? failure() : failure;
        return done(frame);
      });
      return { name, calls: () => calls };
    };

    test("is tried again without using up an attempt, and nothing of it stays", TIMEOUT, async () => {
      const { name } = failing(down(), down(), down(), down(), down());
      const session_id = await world().create(name, { options: { retry: { max_attempts: 1, backoff_ms: 1 } } });
      const session = await world().untilStatus(session_id, "done", "error");
      assert.equal(session.status, "done", session.last_error ?? "");
      const { last_error, retry_at, started_attempt } = session;
      assert.deepEqual(
        { last_error, retry_at, started_attempt },
        { last_error: null, retry_at: null, started_attempt: null },
      );
      assert.deepEqual(
        (await world().steps(session_id)).map(({ status, attempts }) => [status, attempts]),
        [["ok", 6]],
      );
    });

    test("uses up attempts by its other failures, and only by those", TIMEOUT, async () => {
      const { name } = failing(down(), new Error("one"), down(), new Error("two"), down(), new Error("three"));
      const session_id = await world().create(name, { options: { retry: { max_attempts: 3, backoff_ms: 1 } } });
      const session = await world().untilStatus(session_id, "done", "error");
      assert.match(session.last_error ?? "", /three/);
    });

    test(
      "says until when it waits and why; guidance does not shorten the wait unless it interrupts",
      TIMEOUT,
      async () => {
        const { name, calls } = failing(down(HOUR_MS));
        const retry = { max_attempts: 1, backoff_ms: 1, outage_s: 7200 };
        const session_id = await world().create(name, { options: { retry } });
        const waiting = await world().until(session_id, ({ retry_at }) => retry_at !== null);
        assert.ok(Math.abs(Date.parse(waiting.retry_at ?? "") - Date.now() - HOUR_MS) < 60_000, `${waiting.retry_at}`);
        assert.deepEqual([waiting.status, waiting.last_error], ["running", "provider_down: nobody answers"]);
        await world().delivered(await world().tell(session_id, "hurry"));
        await world().meanwhile();
        assert.equal(calls(), 1);
        await world().tell(session_id, "now", "now");
        assert.equal((await world().untilStatus(session_id, "done")).last_error, null);
        assert.equal(calls(), 2);
      },
    );

    test(
      "waits no longer than the outage may last, then fails; a resume gives it the whole time again",
      TIMEOUT,
      async () => {
        const { name } = failing(...Array.from({ length: 4 }, () => () => down(HOUR_MS)));
        const retry = { max_attempts: 5, backoff_ms: 1, outage_s: 0.2 };
        const session_id = await world().create(name, { options: { retry } });
        const failed = await world().untilStatus(session_id, "error", "done");
        assert.deepEqual([failed.status, failed.last_error], ["error", "provider_down: nobody answers"]);
        assert.equal(failed.started_attempt?.outage_since, undefined);
        const rows = await world().steps(session_id);
        assert.deepEqual(
          rows.map(({ status, attempts }) => [status, attempts]),
          [["error", 2]],
        );
        await world().do("agent_resume", session_id);
        const again = await world().until(
          session_id,
          ({ status, retry_at }) => status === "running" && retry_at !== null,
        );
        assert.notEqual(again.started_attempt?.outage_since, undefined);
        assert.equal((await world().untilStatus(session_id, "error")).status, "error");
      },
    );

    test("counts it like any other failure if an outage may not last at all", TIMEOUT, async () => {
      const { name, calls } = failing(down(), down(), down());
      const retry = { max_attempts: 2, backoff_ms: 1, outage_s: 0 };
      const session_id = await world().create(name, { options: { retry } });
      assert.equal((await world().untilStatus(session_id, "error", "done")).status, "error");
      assert.equal(calls(), 2);
    });

    test(
      "continues to wait after a restart: the start of the outage and the next attempt are kept",
      TIMEOUT,
      async () => {
        const { name, calls } = failing(down(HOUR_MS), () => down(HOUR_MS));
        const retry = { max_attempts: 1, backoff_ms: 1, outage_s: 7200 };
        const session_id = await world().create(name, { options: { retry } });
        const waiting = await world().until(session_id, ({ retry_at }) => retry_at !== null);
        await world().restart();
        await world().meanwhile();
        assert.equal(calls(), 1, "it is not asked before its time");
        const after = await world().session(session_id);
        assert.deepEqual([after.retry_at, after.last_error], [waiting.retry_at, waiting.last_error]);
        assert.equal(after.started_attempt?.outage_since, waiting.started_attempt?.outage_since);
        await world().tell(session_id, "now", "now");
        const still = await world().until(
          session_id,
          ({ retry_at }) => retry_at !== null && retry_at !== after.retry_at,
        );
        assert.equal(still.started_attempt?.outage_since, waiting.started_attempt?.outage_since, "the same outage");
        await world().tell(session_id, "now", "now");
        await world().untilStatus(session_id, "done");
        assert.equal((await world().steps(session_id))[0]?.attempts, 3);
      },
    );

    test("starts to wait over if it was paused meanwhile", TIMEOUT, async () => {
      const { name } = failing(down(HOUR_MS), () => down(HOUR_MS));
      const session_id = await world().create(name, {
        options: { retry: { max_attempts: 1, backoff_ms: 1, outage_s: 0.3 } },
      });
      const first = await world().until(session_id, ({ retry_at }) => retry_at !== null);
      await world().do("agent_pause", session_id);
      await new Promise((resolve) => setTimeout(resolve, 400));
      await world().do("agent_resume", session_id);
      const second = await world().until(
        session_id,
        ({ started_attempt }) => started_attempt?.outage_since !== undefined,
      );
      assert.notEqual(second.started_attempt?.outage_since, first.started_attempt?.outage_since);
      assert.equal((await world().untilStatus(session_id, "done", "error")).status, "done");
    });
  });
}
