import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assertTypes } from "./page-code.ts";
import { pageWorld } from "./page-world.ts";

const TIMEOUT = { timeout: 180_000 };

describe("the examples of docs/waiting-asking-acting.md", () => {
  const world = pageWorld("waiting-asking-acting.md");
  const texts = async (session_id: string): Promise<(string | null)[]> =>
    (await world().steps(session_id)).map(({ text }) => text);

  test("have the right types, all in files whose first line names them", TIMEOUT, async () => {
    assert.deepEqual(
      world().blocks.map(({ path }) => path),
      ["monikers/deploy.ts", "monikers/reminder.ts", "monikers/square.ts", "monikers/sum-of-squares.ts"],
    );
    await assertTypes(world().folder);
  });

  test("ask for an approval, and do nothing without it", TIMEOUT, async () => {
    for (const [answer, expected] of [
      ["approve", "1.4.0 is deployed."],
      ["deny", "Not deployed: deny"],
    ] as const) {
      const session_id = await world().create("deploy", { version: "1.4.0" });
      const { session } = await world().awaited(session_id, ({ question }) => question !== null);
      assert.equal(session.question?.text, "Deploy 1.4.0?");
      await world().act(session_id, "agent_answer", { answer });
      await world().awaited(session_id, ({ status }) => status === "done");
      assert.equal((await texts(session_id)).at(-1), expected);
    }
  });

  test("stop at a breakpoint until somebody resumes them", TIMEOUT, async () => {
    const session_id = await world().create("deploy", { version: "1.4.0" }, { hold_before: ["deploy/*"] });
    await world().awaited(session_id, ({ question }) => question !== null);
    await world().act(session_id, "agent_answer", { answer: "approve" });
    const { session } = await world().awaited(session_id, ({ status }) => status === "paused");
    assert.deepEqual(session.pause_reason, { kind: "breakpoint", step_token: "deploy/1.4.0" });
    await world().act(session_id, "agent_resume");
    await world().awaited(session_id, ({ status }) => status === "done");
    assert.equal((await texts(session_id)).at(-1), "1.4.0 is deployed.");
  });

  test("remind when the time comes, and not where they were called off", TIMEOUT, async () => {
    const begun = Date.now();
    const rings = await world().create("reminder", { text: "tea is ready", after_s: 1 });
    const called = await world().create("reminder", { text: "never said", after_s: 3600 });
    await world().awaited(called, ({ status }) => status === "waiting");
    await world().tell(called, "no, thanks");
    await world().awaited(called, ({ status }) => status === "done");
    await world().awaited(rings, ({ status }) => status === "done");
    assert.ok(Date.now() - begun >= 1000);
    assert.deepEqual([(await texts(rings)).at(-1), (await texts(called)).at(-1)], ["tea is ready", "Called off."]);
  });

  test("start ten children and add up what each reports", TIMEOUT, async () => {
    const session_id = await world().create("sum-of-squares", {});
    const { session } = await world().awaited(session_id, ({ status }) => status === "done");
    assert.equal(session.result, "The sum is 285.");
    const children = await world().store.listSessions({ spawned_by: session_id, limit: 100, offset: 0 });
    assert.equal(children.length, 10);
  });

  test("are started by a schedule", TIMEOUT, async () => {
    const start = { agent_id: "adder", moniker: "sum-of-squares" };
    const session_id = await world().create("schedule", { cron: "* * * * * *", start });
    const { session } = await world().awaited(session_id, ({ iteration }) => iteration >= 2);
    const [run] = await world().store.listSessions({ spawned_by: session_id, limit: 1, offset: 0 });
    assert.equal(run?.moniker, "sum-of-squares");
    await world().act(session.session_id, "agent_destroy");
  });

  test("answer with the new code when it was changed meanwhile", TIMEOUT, async () => {
    const file = join(world().folder, "monikers/reminder.ts");
    const session_id = await world().create("reminder", { text: "never said", after_s: 3600 });
    await world().awaited(session_id, ({ status }) => status === "waiting");
    await writeFile(file, (await readFile(file, "utf8")).replace("Called off.", "As you wish."));
    assert.deepEqual((await world().loader.reload()).failed, []);
    await world().tell(session_id, "no, thanks");
    await world().awaited(session_id, ({ status }) => status === "done");
    const [before, after] = await world().steps(session_id);
    assert.equal(after?.text, "As you wish.");
    assert.notEqual(before?.moniker_version, after?.moniker_version);
  });
});
