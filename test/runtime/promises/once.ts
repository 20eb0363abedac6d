import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isHeld } from "../../../src/domain/session.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { repetitions } from "../../repetitions.ts";
import { scratchFolder } from "../../store/scratch-folder.ts";
import { seededRandom, seedFrom } from "../../store/seeded-random.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";
import { RuntimeProcess } from "../runtime-process.ts";

const QUICK_RETRY = { max_attempts: 5, backoff_ms: 1 };
const KILLS = repetitions("EVERSTEP_ONCE_KILLS", { few: 3, many: 200 });
const SESSIONS_PER_KILL = 4;

/** What a step knows about earlier attempts at it. */
export function once(makeHome: MakeHome): void {
  describe("a step", () => {
    const world = sharedWorld(makeHome);

    test("is told how many times it was started, and how the last attempt ended", TIMEOUT, async () => {
      const options = { retry: QUICK_RETRY, step_timeout_s: 0.3 };
      for (const isOnce of [true, false]) {
        const session_id = await world().create("held_finite", { options });
        const first = await world().held.next(session_id);
        assert.deepEqual(first.context.attempt, { number: 1, after: null });
        first.finish({ once: isOnce });
        const begun = await world().held.next(session_id);
        assert.deepEqual(begun.context.attempt, { number: 1, after: null });
        begun.fail(new Error("no"));
        const second = await world().held.next(session_id);
        assert.deepEqual(second.context.attempt, { number: 2, after: "error" });
        const third = await world().held.next(session_id);
        assert.deepEqual(third.context.attempt, { number: 3, after: "timeout" });
        await world().tell(session_id, "hurry", "now");
        const fourth = await world().held.next(session_id);
        assert.deepEqual(fourth.context.attempt, { number: 4, after: "interrupt" });
        fourth.fail(new StepError("bad", "for good", { retryable: false }));
        await world().untilStatus(session_id, "error");
        await world().do("agent_resume", session_id);
        const fifth = await world().held.next(session_id);
        assert.deepEqual(fifth.context.attempt, { number: 5, after: "error" });
        fifth.finish();
        const next = await world().held.next(session_id);
        assert.deepEqual(next.context.attempt, { number: 1, after: null }, "the mark is for one step");
        next.finish({ done: true });
        await world().untilStatus(session_id, "done");
        const taken = (await world().steps(session_id)).map(({ attempts }) => attempts);
        assert.deepEqual(taken, [1, 4, 5, 1]);
      }
    });

    test("marked once has its start in the store before it runs", TIMEOUT, async () => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ once: true });
      const step = await world().held.next(session_id);
      const { started_attempt, step_started_at } = await world().session(session_id);
      assert.deepEqual(started_attempt, { iteration: 1, attempts: 0, once: true, begun: 1 });
      assert.ok(step_started_at);
      step.finish();
      assert.equal((await world().untilIteration(session_id, 1)).started_attempt, null);
    });

    test(
      "marked once that a stop cut short is told so, and one that was paused before it started is not",
      TIMEOUT,
      async () => {
        const cut = await world().create("held");
        const paused = await world().create("held");
        (await world().held.next(cut)).finish({ once: true });
        await world().held.next(cut);
        const before = await world().held.next(paused);
        await world().do("agent_pause", paused);
        before.finish({ once: true });
        await world().untilIteration(paused, 0);
        await world().restart();
        assert.deepEqual((await world().held.next(cut)).context.attempt, { number: 2, after: "interrupt" });
        await world().do("agent_resume", paused);
        assert.deepEqual((await world().held.next(paused)).context.attempt, { number: 1, after: null });
      },
    );
  });
}

/** The same under kills. */
export function onceUnderKills(makeHome: MakeHome): void {
  test(`a step marked once runs once without consent, whatever is killed (${KILLS} kills)`, {
    timeout: 3_600_000,
  }, async (t) => {
    const random = seededRandom(seedFrom("EVERSTEP_ONCE_SEED"));
    await using workspace = await scratchFolder();
    const home = await makeHome();
    const order = { url: home.url, workspace: workspace.path };
    const ids: string[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await using process = new RuntimeProcess(order);
      const fresh: string[] = [];
      for (let at = 0; at < SESSIONS_PER_KILL; at += 1) {
        const payload = { moniker: "effect_once", params: { hold_ms: random.integer(40) } };
        const { session_id } = await process.submit({ action_type: "agent_create", agent_id: "a", payload });
        fresh.push(session_id);
      }
      ids.push(...fresh);
      await process.reported((report) => report.kind === "started" && fresh.includes(report.session_id));
      await pause(random.integer(20));
      await process.kill();
    }
    await using last = new RuntimeProcess(order);
    await last.rested(ids);
    await last.stop();
    await using world = await World.open(async () => home);
    const lines = (await readFile(join(workspace.path, "effects"), "utf8")).trim().split("\n");
    const effects = Map.groupBy(lines, (line) => line.split(" ")[0] as string);
    let asked = 0;
    for (const session_id of ids) {
      const session = await world.session(session_id);
      assert.ok(session.status === "done" || isHeld(session), `${session_id} is ${session.status}: lost`);
      const attempts = effects.get(session_id) ?? [];
      const unasked = attempts.filter((line) => line.endsWith(" 1"));
      // A process that dies between the mark and the call leaves a step that was started and did nothing.
      assert.ok(unasked.length <= 1, `${session_id} ran ${unasked.length} times unasked`);
      assert.ok(attempts.length > 0, `${session_id} never ran`);
      asked += attempts.length - unasked.length;
    }
    t.diagnostic(`${ids.length} sessions, ${KILLS} kills, ${asked} attempts that were told of a crash`);
    assert.ok(asked > 0, "no kill hit a step");
  });
}
