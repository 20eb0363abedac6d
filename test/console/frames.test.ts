import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "../../src/domain/json.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const HOUR_MS = 3_600_000;

describe("a session that rests or acts by its frames", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("says when it wakes, in the list and on its page", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const until = new Date(Date.now() + 3 * HOUR_MS + 60_000).toISOString();
    const frames = [{ text: "see you later", wait: { until } }];
    const { session_id } = await world.api.create("script", { params: { frames }, options: { stop_on_done: false } });
    await world.status(session_id, "waiting");
    await open("/");
    const row = page.locator(`[data-testid=session-row][data-session="${session_id}"]`);
    await row.getByText("Wakes in 3h: see you later").waitFor();
    await row.getByRole("link").click();
    await page.getByTestId("wakes").filter({ hasText: "wakes in 3h" }).waitFor();
  });

  test("leads to its children, and they lead back to the step that started them", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const child = (to: number) => ({
      action_type: "agent_create",
      agent_id: `counter-${to}`,
      moniker: "count",
      params: { to },
    });
    const frames: JsonValue = [
      { text: "go" },
      { text: "started two", actions: [child(2), child(3)], wait: {} },
      { text: "on", wait: {} },
    ];
    const { session_id } = await world.api.create("script", { params: { frames }, options: { stop_on_done: false } });
    await world.iteration(session_id, 1);
    await world.status(`${session_id}.1.0`, "done");
    await world.status(`${session_id}.1.1`, "done");
    await open(`/sessions/${session_id}`);
    await page.getByRole("tab", { name: "Children" }).click();
    const rows = page.getByTestId("child");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "children");
    await rows.getByRole("link", { name: "counter-3" }).click();
    await page.getByRole("heading", { name: "counter-3" }).waitFor();
    await page.getByRole("link", { name: "Started by step 1 of its parent" }).click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 1" }).waitFor();
    assert.match(page.url(), new RegExp(`/sessions/${session_id}\\?step=1$`));
  });
});
