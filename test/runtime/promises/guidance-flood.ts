import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GuidanceLimit } from "../../../src/actions/guidance-limit.ts";
import { amountOf, GUIDANCE_SLICE } from "../../../src/domain/guidance-amount.ts";
import { repetitions } from "../../repetitions.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

const MANY = 2 * GUIDANCE_SLICE.count + 500;
const MEGABYTE = 1_000_000;
/** More than one step receives at once; `many` is more than a frame may have. */
const MEGABYTES = repetitions("EVERSTEP_FLOOD_MEGABYTES", { few: 6, many: 36 });

/**
 * A lot of guidance takes few commits, is consumed in slices, never holds up a request to pause, resume or destroy, and is
 * bounded.
 */
export function guidanceFlood(makeHome: MakeHome): void {
  describe("a flood of guidance", () => {
    const world = sharedWorld(makeHome);

    test("to a paused session is delivered, and used in order, in steps of bounded size", TIMEOUT, async () => {
      const session_id = await pausedSession(world(), "echo");
      const ids = await tellMany(world(), session_id);
      await world().until(session_id, ({ pending_guidance }) => pending_guidance.length === MANY);
      for (const { receipt } of await guidanceOf(world(), session_id)) assert.equal(receipt, "delivered");
      await world().do("agent_resume", session_id);
      await world().ended(ids.at(-1) ?? "");
      const steps = await world().steps(session_id);
      assert.deepEqual(
        steps.flatMap(({ action_ids }) => action_ids),
        ids,
      );
      for (const { guidance } of steps) assert.ok(guidance.length <= GUIDANCE_SLICE.count);
      for (const { receipt } of await guidanceOf(world(), session_id)) assert.equal(receipt, "consumed");
      assert.equal((await world().untilStatus(session_id, "waiting")).pending_guidance.length, 0);
    });

    test("does not hold up a resume, whose first step has what was told before", TIMEOUT, async () => {
      const session_id = await pausedSession(world(), "held");
      await world().runtime.stop();
      await tellMany(world(), session_id);
      const { action_id } = await world().submit({ action_type: "agent_resume", session_id });
      await world().restart();
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, numbers(GUIDANCE_SLICE.count));
      const resumed = await world().settled(action_id);
      assert.equal(resumed.outcome, "ok");
      await world().until(session_id, ({ pending_guidance }) => pending_guidance.length === MANY);
      const last = (await guidanceOf(world(), session_id))[0];
      assert.ok((resumed.processed_at ?? "") < (last?.processed_at ?? ""), "it waited for all of it");
      step.finish();
      assert.deepEqual(
        (await world().held.next(session_id)).frame.guidance,
        numbers(2 * GUIDANCE_SLICE.count).slice(GUIDANCE_SLICE.count),
      );
    });

    test("does not hold up a destroy, and all of it is returned", TIMEOUT, async () => {
      const session_id = await pausedSession(world(), "echo");
      await world().runtime.stop();
      const ids = await tellMany(world(), session_id);
      const { action_id } = await world().submit({ action_type: "agent_destroy", session_id });
      await world().restart();
      assert.equal((await world().settled(action_id)).outcome, "ok");
      await world().untilStatus(session_id, "stopped");
      await world().ended(ids.at(-1) ?? "");
      const actions = await guidanceOf(world(), session_id);
      assert.equal(actions.length, MANY);
      for (const { receipt, error } of actions) {
        assert.equal(receipt, "bounced");
        assert.match(error ?? "", /^the session (?:ended first|is stopp)/);
      }
      assert.deepEqual(await world().steps(session_id), []);
    });

    test(
      `of ${MEGABYTES} megabytes is used in steps of bounded size, and does not fail the session`,
      TIMEOUT,
      async () => {
        await using large = await World.open(makeHome);
        const restart = async (): Promise<void> => {
          await large.runtime.stop();
          await large.start({ limit: new GuidanceLimit(large.store, { count: 100, bytes: 100 * MEGABYTE }) });
        };
        await restart();
        const repeats = large.moniker("reactive", async ({ step, guidance = [] }) => ({
          step,
          next_step: step,
          state: {},
          data: guidance,
          done: false,
        }));
        const session_id = await pausedSession(large, repeats);
        const words = Array.from({ length: MEGABYTES }, (_, at) => `${at} ${"x".repeat(MEGABYTE)}`);
        // Stopped, so that they are delivered in batches: one at a time, each would rewrite all the previous ones.
        await large.runtime.stop();
        const ids = await Promise.all(words.map((word) => large.tell(session_id, word)));
        await restart();
        await large.settled(ids.at(-1) ?? "");
        await large.do("agent_resume", session_id);
        await large.ended(ids.at(-1) ?? "");
        assert.equal((await large.untilStatus(session_id, "waiting", "error")).status, "waiting");
        const steps = await large.steps(session_id);
        assert.deepEqual(
          steps.flatMap(({ action_ids }) => action_ids),
          ids,
        );
        for (const { guidance } of steps) assert.ok(amountOf(guidance).bytes <= GUIDANCE_SLICE.bytes);
      },
    );
  });

  describe("guidance that no step used yet", () => {
    const limited = async (most: { count: number; bytes: number }): Promise<World> => {
      const world = await World.open(makeHome);
      await world.runtime.stop();
      await world.start({ limit: new GuidanceLimit(world.store, most) });
      return world;
    };

    test("is bounded by count; other requests are taken in, and more when it was used", TIMEOUT, async () => {
      await using world = await limited({ count: 20, bytes: MEGABYTE });
      const session_id = await pausedSession(world, "echo");
      const outcomes = await Promise.all(
        numbers(60).map((guidance) =>
          world.runtime.queue.submit({ action_type: "agent_interrupt", session_id, payload: { guidance } }),
        ),
      );
      const accepted = outcomes.filter(({ kind }) => kind === "accepted");
      const full = outcomes.filter((outcome) => outcome.kind === "full");
      assert.deepEqual([accepted.length, full.length], [20, 40]);
      for (const { detail, retry_after_s } of full) {
        assert.match(detail, /^guidance_full: /);
        assert.ok(retry_after_s > 0);
      }
      assert.equal((await guidanceOf(world, session_id)).length, 20);
      await world.do("agent_resume", session_id);
      await world.untilStatus(session_id, "waiting");
      const again = async () =>
        (await world.runtime.queue.submit({ action_type: "agent_input", session_id, payload: { text: "again" } })).kind;
      while ((await again()) !== "accepted") await world.meanwhile();
      await world.do("agent_pause", session_id);
      await world.do("agent_destroy", session_id);
    });

    test("is bounded by bytes", TIMEOUT, async () => {
      await using world = await limited({ count: 1000, bytes: 50_000 });
      const session_id = await pausedSession(world, "echo");
      const kinds: string[] = [];
      for (let at = 0; at < 12; at += 1) {
        const payload = { guidance: "x".repeat(9000) };
        kinds.push((await world.runtime.queue.submit({ action_type: "agent_interrupt", session_id, payload })).kind);
      }
      assert.deepEqual(kinds, [...Array(5).fill("accepted"), ...Array(7).fill("full")]);
      await world.tell(session_id, "what is small still fits");
    });

    test("is bounded where agents listen to agents: what does not fit is returned", TIMEOUT, async () => {
      await using world = await limited({ count: 3, bytes: MEGABYTE });
      const conversation_id = await world.conversation();
      const listener = await pausedSession(world, "echo");
      const { agent_id } = await world.session(listener);
      const joined = { joined_at: "2026-01-01T00:00:00.000Z", left_at: null, user_id: null, role: "listener" };
      await world.store.commit({
        participants: [{ participant_id: "p", conversation_id, agent_id, session_id: listener, ...joined }],
      });
      const speaker = await world.create("count", { conversation_id, params: { to: 9 } });
      await world.untilStatus(speaker, "done");
      const heard = await guidanceOf(world, listener);
      for (const { action_id } of heard) await world.settled(action_id);
      const receipts = (await guidanceOf(world, listener)).map(({ receipt }) => receipt).toSorted();
      assert.deepEqual(receipts, [...Array(7).fill("bounced"), ...Array(3).fill("delivered")]);
      const messages = await world.store.listMessages({ conversation_id, limit: 100, offset: 0 });
      assert.equal(messages.length, 10, "what was said is in the conversation all the same");
    });
  });
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

async function pausedSession(world: World, moniker: string): Promise<string> {
  const session_id = await world.create(moniker);
  if (moniker === "held") {
    const step = await world.held.next(session_id);
    await world.do("agent_pause", session_id);
    step.finish();
    await world.untilIteration(session_id, 0);
  } else await world.do("agent_pause", session_id);
  return session_id;
}

/** Sends consecutive numbers as guidance; resolves with their actions. */
async function tellMany(world: World, session_id: string): Promise<string[]> {
  return Promise.all(numbers(MANY).map((number) => world.tell(session_id, number)));
}

/** Newest first. */
async function guidanceOf(world: World, session_id: string) {
  const actions = await world.actions(session_id);
  return actions.filter(({ action_type }) => action_type === "agent_interrupt" || action_type === "agent_input");
}
