import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { VersionedMoniker } from "../../../src/monikers/catalog.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

type Migration = { state: JsonObject; from: string | null };

/** Replaces a moniker of the world by another version, as a reload does. */
function change(world: World, name: string, more: Partial<VersionedMoniker>): void {
  const moniker = world.catalog.get(name) ?? assert.fail(`no ${name}`);
  world.catalog.set(name, { ...moniker, ...more });
}

/** A reactive moniker that counts its steps in `n`, and the arguments of its migrations. */
function counter(world: World, version: string | undefined) {
  const migrations: Migration[] = [];
  const name = world.moniker(
    "reactive",
    ({ step, state }) => {
      const n = Number(state["n"] ?? 0) + 1;
      return { step, next_step: String(n), state: { ...state, n }, text: JSON.stringify(state), done: false };
    },
    version === undefined ? {} : { version },
  );
  const migrate = (state: JsonObject, from: string | null): JsonObject => {
    migrations.push({ state: { ...state }, from });
    return { ...state, migrated: true };
  };
  return { name, migrations, migrate };
}

async function stepOnce(world: World, session_id: string): Promise<void> {
  const { iteration } = await world.session(session_id);
  await world.tell(session_id, "go on");
  await world.untilIteration(session_id, iteration + 1);
}

/** What holds when the code changes while sessions exist. */
export function versions(makeHome: MakeHome): void {
  describe("code that changes", () => {
    const world = sharedWorld(makeHome);
    const versionsOf = async (session_id: string) =>
      (await world().steps(session_id)).map(({ status, moniker_version }) => [status, moniker_version]);

    test("lets a running step finish on the old version, and every step tells its own", TIMEOUT, async () => {
      change(world(), "held_finite", { version: "first" });
      const session_id = await world().create("held_finite", {
        options: { retry: { max_attempts: 1, backoff_ms: 1 } },
      });
      const step = await world().held.next(session_id);
      change(world(), "held_finite", { version: "second" });
      step.finish();
      const failing = await world().held.next(session_id);
      change(world(), "held_finite", { version: "third" });
      failing.fail(new Error("of the second"));
      await world().untilStatus(session_id, "error");
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish({ done: true });
      await world().untilStatus(session_id, "done");
      assert.deepEqual(await versionsOf(session_id), [
        ["ok", "first"],
        ["error", "second"],
        ["ok", "third"],
      ]);
    });

    test("migrates the state once for each change, and stores it with the step", TIMEOUT, async () => {
      const { name, migrations, migrate } = counter(world(), "first");
      const session_id = await world().create(name);
      change(world(), name, { version: "second", migrate });
      await stepOnce(world(), session_id);
      assert.deepEqual(migrations, [], "there is no state before the first step");
      change(world(), name, { version: "third" });
      await stepOnce(world(), session_id);
      await stepOnce(world(), session_id);
      assert.deepEqual(migrations, [{ state: { n: 1 }, from: "second" }]);
      const [first, second] = await world().steps(session_id);
      assert.deepEqual([first?.state, second?.state], [{ n: 1 }, { n: 2, migrated: true }]);
      await world().restart();
      await stepOnce(world(), session_id);
      assert.equal(migrations.length, 1, "a restart on the same version migrates nothing");
      change(world(), name, { version: "fourth" });
      await world().restart();
      await stepOnce(world(), session_id);
      assert.deepEqual(migrations[1], { state: { n: 4, migrated: true }, from: "third" }, "a restart on another does");
    });

    test("calls migrate with null where the last step's version was not recorded", TIMEOUT, async () => {
      const { name, migrations, migrate } = counter(world(), undefined);
      const session_id = await world().create(name);
      await stepOnce(world(), session_id);
      change(world(), name, { version: "first", migrate });
      await stepOnce(world(), session_id);
      assert.deepEqual(migrations, [{ state: { n: 1 }, from: null }]);
    });

    test("migrates the same state again for a step that is tried again", TIMEOUT, async () => {
      const { name, migrations, migrate } = counter(world(), "first");
      const session_id = await world().create(name, { options: { retry: { max_attempts: 3, backoff_ms: 1 } } });
      await stepOnce(world(), session_id);
      const before = world().catalog.get(name) ?? assert.fail();
      let failures = 0;
      change(world(), name, {
        version: "second",
        migrate,
        step(frame, context) {
          if (failures++ < 2) throw new Error("not yet");
          return before.step(frame, context);
        },
      });
      await stepOnce(world(), session_id);
      assert.deepEqual(
        migrations,
        [1, 2, 3].map(() => ({ state: { n: 1 }, from: "first" })),
      );
    });

    for (const [what, broken, reason] of [
      ["throws", () => assert.fail("no way"), /no way/],
      ["returns what is no state", () => [] as unknown as JsonObject, /state/],
      ["returns nothing", () => undefined as unknown as JsonObject, /state/],
    ] as const)
      test(`ends the step as migrate_failed if migrate ${what}, until it is fixed`, TIMEOUT, async () => {
        const { name, migrate } = counter(world(), "first");
        const session_id = await world().create(name);
        await stepOnce(world(), session_id);
        change(world(), name, { version: "second", migrate: broken });
        await world().tell(session_id, "go on");
        const { last_error } = await world().untilStatus(session_id, "error");
        assert.match(last_error ?? "", /^migrate_failed: .* from version first to second: /);
        assert.match(last_error ?? "", reason);
        change(world(), name, { version: "third", migrate });
        await world().do("agent_resume", session_id);
        await world().untilIteration(session_id, 1);
        const steps = await world().steps(session_id);
        assert.deepEqual(
          steps.map(({ status, attempts, iteration, state }) => [status, attempts, iteration, state]),
          [
            ["ok", 1, 0, { n: 1 }],
            ["error", 1, 1, { n: 1 }],
            ["ok", 2, 1, { n: 2, migrated: true }],
          ],
        );
        assert.deepEqual(steps[2]?.guidance, ["go on"], "its guidance was kept");
      });

    test("migrates the state that a fork takes from its parent", TIMEOUT, async () => {
      const { name, migrations, migrate } = counter(world(), "first");
      const session_id = await world().create(name);
      await stepOnce(world(), session_id);
      await stepOnce(world(), session_id);
      change(world(), name, { version: "second", migrate });
      const payload = { iteration: 0, guidance: "go on" };
      const forked = await world().submit({ action_type: "agent_fork", session_id, payload });
      await world().untilIteration(forked.session_id, 1);
      assert.deepEqual(migrations, [{ state: { n: 1 }, from: "first" }]);
    });
  });
}
