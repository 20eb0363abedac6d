import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Action } from "../../../src/domain/action.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

/** Guidance that a person takes back: no step receives it, and nothing else is lost or duplicated. */
export function dropping(makeHome: MakeHome): void {
  describe("guidance that is taken back", () => {
    const world = sharedWorld(makeHome);

    const drop = (session_id: string, action_id: string): Promise<Action> =>
      world().act("agent_drop", session_id, { action_id });
    const deliverGuidance = async (session_id: string, guidance: string): Promise<string> => {
      const action_id = await world().tell(session_id, guidance);
      await world().delivered(action_id);
      return action_id;
    };
    const mustBeTakenBack = async (action_id: string): Promise<void> => {
      const action = await world().store.getAction(action_id);
      assert.deepEqual([action?.receipt, action?.outcome, action?.consumed_iteration], ["bounced", "ok", null]);
      assert.match(action?.error ?? "", /taken back/);
    };
    const refusal = (session_id: string, action_id: string) =>
      world().runtime.queue.submit({ action_type: "agent_drop", session_id, payload: { action_id } });

    test("is in no step, and the rest is in the next one, also after a restart", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await world().do("agent_pause", session_id);
      const [first, second, third] = [
        await deliverGuidance(session_id, "a"),
        await deliverGuidance(session_id, "b"),
        await deliverGuidance(session_id, "c"),
      ];
      assert.equal((await drop(session_id, second)).outcome, "ok");
      await mustBeTakenBack(second);
      await world().restart();
      await mustBeTakenBack(second);
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["a", "c"]);
      step.finish();
      for (const action_id of [first, third]) assert.equal((await world().ended(action_id)).receipt, "consumed");
      const [row] = await world().steps(session_id);
      assert.deepEqual(
        [row?.guidance, row?.action_ids],
        [
          ["a", "c"],
          [first, third],
        ],
      );
    });

    test("excludes that of the running step, which keeps it; what came later can be taken back", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const first = await deliverGuidance(session_id, "given");
      const running = await world().held.next(session_id);
      const [later, last] = [await deliverGuidance(session_id, "later"), await deliverGuidance(session_id, "last")];
      const refused = await drop(session_id, first);
      assert.equal(refused.outcome, "rejected");
      assert.match(refused.error ?? "", /the running step already has/);
      assert.equal((await drop(session_id, later)).outcome, "ok");
      running.finish();
      assert.deepEqual([(await world().ended(first)).consumed_iteration], [0]);
      const next = await world().held.next(session_id);
      assert.deepEqual(next.frame.guidance, ["last"]);
      next.finish();
      assert.equal((await world().ended(last)).consumed_iteration, 1);
      await mustBeTakenBack(later);
    });

    test("lets a session go on that it made fail", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive", {
        options: { retry: { max_attempts: 1, backoff_ms: 0 } },
      });
      const poison = await deliverGuidance(session_id, "poison");
      (await world().held.next(session_id)).fail(new StepError("bad", "no", { retryable: false }));
      await world().untilStatus(session_id, "error");
      assert.equal((await drop(session_id, poison)).outcome, "ok");
      await mustBeTakenBack(poison);
      await world().do("agent_resume", session_id);
      const { pending_guidance, status } = await world().session(session_id);
      assert.deepEqual([pending_guidance, status], [[], "waiting"]);
      await world().tell(session_id, "fine");
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["fine"]);
      step.finish();
      await world().untilIteration(session_id, 0);
    });

    test("leaves what the session asks open", TIMEOUT, async () => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ ask: { text: "Which?" } });
      await world().untilStatus(session_id, "waiting");
      await world().do("agent_pause", session_id);
      const said = await deliverGuidance(session_id, "beside the point");
      await drop(session_id, said);
      await world().do("agent_resume", session_id);
      const { status, question } = await world().session(session_id);
      assert.deepEqual([status, question?.text], ["waiting", "Which?"]);
      await world().do("agent_answer", session_id, { answer: "this" });
      const step = await world().held.next(session_id);
      const [answered] = step.frame.guidance ?? [];
      assert.deepEqual(answered, { answer: "this", question_id: question?.question_id });
      step.finish();
      await world().do("agent_destroy", session_id);
    });

    test("is refused where it was used, came to nothing, is no guidance, or is somebody else's", TIMEOUT, async () => {
      const session_id = await world().create("echo");
      const used = await world().tell(session_id, "hi");
      await world().ended(used);
      const pause = await world().do("agent_pause", session_id);
      const other = await world().create("echo");
      assert.deepEqual(await refusal(session_id, used), {
        kind: "conflict",
        detail: `action ${used} was used by step 0`,
      });
      assert.equal((await refusal(session_id, pause.action_id)).kind, "conflict");
      assert.equal((await refusal(other, used)).kind, "unknown");
      assert.equal((await refusal(session_id, "absent")).kind, "unknown");
      const late = await deliverGuidance(session_id, "late");
      await drop(session_id, late);
      assert.equal((await refusal(session_id, late)).kind, "conflict");
    });

    test("ends once, whenever it is taken back: each piece is used by one step or taken back", TIMEOUT, async () => {
      const session_id = await world().create("echo");
      const dropped: Promise<Action>[] = [];
      const ids: string[] = [];
      for (let piece = 0; piece < 60; piece++) {
        const action_id = await world().tell(session_id, `piece ${piece}`);
        ids.push(action_id);
        const request = { action_type: "agent_drop", session_id, payload: { action_id } };
        const outcome = await world().runtime.queue.submit(request);
        if (outcome.kind === "accepted") dropped.push(world().settled(outcome.action_id));
        else assert.equal(outcome.kind, "conflict");
      }
      const drops = await Promise.all(dropped);
      const actions = await Promise.all(ids.map((id) => world().ended(id)));
      const steps = await world().steps(session_id);
      for (const { action_id, receipt } of actions) {
        const uses = steps.filter(({ action_ids }) => action_ids.includes(action_id)).length;
        assert.equal(uses, receipt === "consumed" ? 1 : 0, action_id);
        const takings = drops.filter(({ payload, outcome }) => payload["action_id"] === action_id && outcome === "ok");
        assert.equal(takings.length, receipt === "bounced" ? 1 : 0, action_id);
      }
    });
  });
}
