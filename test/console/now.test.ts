import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { JsonValue } from "../../src/domain/json.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const now = (page: Page) => page.getByTestId("current-step");
const limit = (page: Page, name: string) => page.locator(`[data-testid=limit][data-limit="${name}"]`);

describe("what a session does now", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test(
    "is the first thing on its page: the step, its time, its attempt and its text as it grows",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const options = { retry: { max_attempts: 4 }, step_timeout_s: 90 };
      const { session_id } = await world.api.create("typist", { params: { word_ms: 1200 }, options });
      await open(`/sessions/${session_id}`);
      await now(page).getByText("Waiting for guidance").waitFor();
      await world.api.post(`/api/sessions/${session_id}/interrupt`, {
        guidance: "one uses:files/read two three four five",
      });
      await now(page).getByText("Running step 0").waitFor();
      await now(page).getByText("attempt 1 of 4").waitFor();
      await now(page).getByTestId("now-tools").getByText("files/read").waitFor();
      await page.getByTestId("streamed").getByText("one two").waitFor();
      await limit(page, "Time for this attempt")
        .getByText(/^[1-9] s of 1 min 30 s$/)
        .waitFor();
      assert.deepEqual(await brokenRules(page), []);
      await picture(page, "now-running");
      await now(page).getByText("Waiting for guidance").waitFor();
      await page.getByRole("region", { name: "Last text" }).getByText("four five").waitFor();
    },
  );

  test("has a bar for each limit, and a figure where there is none", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const options = { max_steps: 40, max_runtime_s: 3600, max_tokens: 1000 };
    const { session_id } = await world.api.create("count", { params: { to: 9 }, options });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    await now(page).getByText("Done").waitFor();
    const meter = limit(page, "Steps").getByRole("meter");
    assert.equal(await meter.getAttribute("aria-valuetext"), "10 of 40");
    assert.equal(await meter.getAttribute("aria-valuenow"), "25");
    await limit(page, "Time").getByText("of 1 h").waitFor();
    await limit(page, "Tokens").getByText("of 1,000").waitFor();
    assert.equal(await limit(page, "Cost").getByRole("meter").count(), 0, "its cost has no limit");
  });

  test("is a question that is answered right there", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const choices = [
      { value: "yes", label: "Yes" },
      { value: "no", label: "No" },
    ];
    const frames: JsonValue = [{ ask: { text: "Shall I go on?", choices }, wait: { until } }, { text: "Went on." }];
    const { session_id } = await world.api.create("script", { params: { frames } });
    await world.session(session_id, ({ question }) => question !== null);
    await open(`/sessions/${session_id}?step=0`);
    await page.getByRole("tab", { name: "Now (it asks something)" }).waitFor();
    await page.keyboard.press("a");
    await now(page).getByText("Waiting for your answer").waitFor();
    await page
      .getByTestId("question")
      .getByText(/\(in (?:59m|1h)\)/)
      .waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "now-asks");
    await page.getByTestId("now").getByRole("button", { name: "Yes" }).click();
    await now(page).getByText("Done").waitFor();
    await page.getByRole("region", { name: "Last text" }).getByText("Went on.").waitFor();
  });

  test("is what it waits for: a time, another attempt, somebody who resumes it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const until = new Date(Date.now() + 7_500_000).toISOString();
    const sleeping = await world.api.create("script", { params: { frames: [{ wait: { until } }, { text: "up" }] } });
    await world.session(sleeping.session_id, ({ wake_at }) => wake_at !== null);
    await open(`/sessions/${sleeping.session_id}`);
    await now(page).getByText("Waiting", { exact: true }).waitFor();
    await now(page)
      .getByText(/\(in 2 h [45] min\)/)
      .waitFor();

    const options = { retry: { max_attempts: 3, backoff_ms: 600_000 } };
    const failing = await world.api.create("count", { params: { to: 3, fail_at: 1 }, options });
    await open(`/sessions/${failing.session_id}`);
    await now(page).getByText("Waiting to retry").waitFor();
    await now(page).getByText("attempt 2 of 3").waitFor();
    await now(page)
      .getByText(/\(in \d+ min/)
      .waitFor();

    const counting = await world.api.create("count", { params: { to: 100_000, delay_ms: 20 } });
    await open(`/sessions/${counting.session_id}`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await now(page).getByText("Paused").waitFor();
    await world.api.post(`/api/sessions/${counting.session_id}/interrupt`, { guidance: "faster" });
    await page.getByTestId("pending").getByText("faster").waitFor();
    await world.control(counting.session_id, "destroy");
    await now(page).getByText("Destroyed").waitFor();
  });

  test("Enter sends on a telephone, and makes a line elsewhere", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    const { session_id } = await world.api.create("echo");
    await world.status(session_id, "waiting");
    await open(`/sessions/${session_id}`);
    const field = page.getByLabel("Guidance");
    if (!(await field.isVisible())) await page.getByRole("tab", { name: "Steps" }).click();
    await field.fill("from a telephone");
    await field.press("Enter");
    await page.getByText("from a telephone").first().waitFor();
    await eventually("the field is empty again", async () => (await field.inputValue()) === "");
    await page.setViewportSize({ width: 1280, height: 720 });
    await page.locator("textarea[enterkeyhint=enter]").waitFor();
    await field.fill("one");
    await field.press("Enter");
    assert.equal(await field.inputValue(), "one\n");
  });

  test("fits on a telephone, with the steps one tap away", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 }, colorScheme: "dark" });
    const { session_id } = await world.api.create("count", { params: { to: 12 }, options: { max_steps: 40 } });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    await now(page).getByText("Done").waitFor();
    assert.equal(await page.getByTestId("step-row").first().isVisible(), false);
    await picture(page, "now-narrow");
    await page.getByRole("tab", { name: "Steps" }).click();
    await page.locator("[data-testid=step-row][data-iteration='12']").click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 12" }).waitFor();
    assert.deepEqual(await brokenRules(page), []);
  });
});
