import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";
import { type GuidancePiece, tellAll, usedOnce } from "./guidance.ts";

/** Guidance that no step can use is returned to its sender with the reason, never dropped. */
export function guidanceEnds(makeHome: MakeHome): void {
  describe("guidance that no step used", () => {
    const world = sharedWorld(makeHome);

    test("is bounced where the session had ended before", TIMEOUT, async () => {
      const done = await world().create("count", { params: { to: 0 } });
      const stopped = await world().create("joke", { options: { max_steps: 1 } });
      const destroyed = await world().create("held_reactive");
      await world().do("agent_destroy", destroyed);
      await world().untilStatus(done, "done");
      await world().untilStatus(stopped, "stopped");
      await world().untilStatus(destroyed, "stopped");
      for (const [session_id, reason] of [
        [done, /done/],
        [stopped, /stopped/],
        [destroyed, /stopped/],
      ] as const) {
        for (const mode of ["next", "now"] as const) {
          const before = await world().steps(session_id);
          const action = await world().ended(await world().tell(session_id, "too late", mode));
          assert.deepEqual(
            { receipt: action.receipt, outcome: action.outcome, consumed: action.consumed_iteration },
            { receipt: "bounced", outcome: "rejected", consumed: null },
          );
          assert.match(action.error ?? "", reason);
          assert.deepEqual(await world().steps(session_id), before);
        }
      }
    });

    test("is bounced when the running step was the last by its own word", TIMEOUT, async () => {
      const session_id = await world().create("held_finite");
      const step = await world().held.next(session_id);
      const pieces = await tellAll(world(), session_id, ["a", "b"]);
      step.finish({ done: true });
      await bounced(world(), session_id, pieces, /done/);
    });

    test("is bounced when a limit ends the session", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { max_steps: 1 } });
      const step = await world().held.next(session_id);
      const pieces = await tellAll(world(), session_id, ["a"]);
      step.finish();
      await bounced(world(), session_id, pieces, /max_steps/);
    });

    test("is bounced when time runs out in mid-step, with what that step had been given", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive", { options: { max_runtime_s: 1.5 } });
      const stepPieces = await tellAll(world(), session_id, ["a"]);
      await world().held.next(session_id);
      const pieces = await tellAll(world(), session_id, ["b"]);
      await bounced(world(), session_id, [...stepPieces, ...pieces], /max_runtime_s/);
    });

    test("is bounced when the session is destroyed: paused, in a step, or in error", TIMEOUT, async () => {
      const paused = await world().create("held");
      (await world().held.next(paused)).finish();
      await world().do("agent_pause", paused);
      const running = await world().create("held");
      await world().held.next(running);
      const failed = await failedSession(world());
      for (const session_id of [paused, running, failed]) {
        const pieces = await tellAll(world(), session_id, ["a", "b"]);
        await world().do("agent_destroy", session_id);
        await bounced(world(), session_id, pieces, /destroyed/);
      }
    });

    test("stays with a session in error, and is used once it is resumed", TIMEOUT, async () => {
      const session_id = await failedSession(world());
      const pieces = await tellAll(world(), session_id, ["a", "b"]);
      const session = await world().session(session_id);
      assert.equal(session.status, "error");
      assert.deepEqual(session.pending_guidance, ["a", "b"]);
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 1, "guidance alone does not resume it");
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["a", "b"]);
      step.finish();
      await usedOnce(world(), session_id, { 0: pieces });
    });

    test("was given to a step that failed for good, and is used once the session is resumed", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const pieces = await tellAll(world(), session_id, ["a"]);
      (await world().held.next(session_id)).fail(new StepError("no", "never", { retryable: false }));
      const { pending_guidance } = await world().untilStatus(session_id, "error");
      assert.deepEqual(pending_guidance, ["a"]);
      const more = await tellAll(world(), session_id, ["b"]);
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["a", "b"]);
      step.finish();
      await usedOnce(world(), session_id, { 0: [...pieces, ...more] });
    });

    test("and was sent while the session was stopping is bounced", TIMEOUT, async () => {
      const session_id = await world().create("held");
      await world().held.next(session_id);
      const destroy = await world().submit({ action_type: "agent_destroy", session_id });
      const action_id = await world().tell(session_id, "too late");
      assert.equal((await world().settled(destroy.action_id)).outcome, "ok");
      const action = await world().ended(action_id);
      assert.equal(action.receipt, "bounced");
      assert.match(action.error ?? "", /stopp/);
    });
  });
}

async function bounced(world: World, session_id: string, pieces: GuidancePiece[], reason: RegExp): Promise<void> {
  for (const { action_id } of pieces) {
    const action = await world.ended(action_id);
    assert.equal(action.receipt, "bounced");
    assert.equal(action.consumed_iteration, null);
    assert.match(action.error ?? "", reason);
  }
  const session = await world.untilStatus(session_id, "stopped", "done");
  assert.deepEqual(session.pending_guidance, []);
  const ids = new Set(pieces.map(({ action_id }) => action_id));
  for (const step of await world.steps(session_id)) assert.ok(step.action_ids.every((id) => !ids.has(id)));
}

async function failedSession(world: World): Promise<string> {
  const session_id = await world.create("held");
  (await world.held.next(session_id)).fail(new StepError("no", "never", { retryable: false }));
  await world.untilStatus(session_id, "error");
  return session_id;
}
