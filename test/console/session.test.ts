import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { lastStep, scrollToPart, stepsShown, untilStep } from "./in-page.ts";

const stepRow = (page: Page, iteration: number) =>
  page.locator(`[data-testid=step-row][data-iteration="${iteration}"]`);
const header = (page: Page) => page.locator("main header");
const NO_RETRY = { retry: { max_attempts: 1, backoff_ms: 0 } };

describe("a session", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("streams the text of the running step, then shows the step", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist", { params: { word_ms: 1000 } });
    await open(`/sessions/${session_id}`);
    await page.getByText("It is waiting for guidance").waitFor();
    await page.getByRole("textbox", { name: "Guidance" }).fill("one two three four");
    await page.getByRole("button", { name: "Send guidance" }).click();
    const running = page.getByTestId("running-row");
    await running.getByText("one two", { exact: false }).waitFor();
    assert.doesNotMatch((await running.textContent()) ?? "", /four/);
    await stepRow(page, 0).getByText("one two three four").last().waitFor();
    await running.waitFor({ state: "detached" });
  });

  test(
    "shows the step that runs: since when, which attempt, its tools; and after a pause that it is finishing",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const options = { retry: { max_attempts: 4, backoff_ms: 1 } };
      const params = { to: 1, delay_ms: 5000, fail_at: 0, fail_times: 1 };
      const { session_id } = await world.api.create("count", { params, options });
      await open(`/sessions/${session_id}`);
      const running = page.getByTestId("running-row");
      await running.getByText("attempt 1 of 4").waitFor();
      await running.getByText("attempt 2 of 4").waitFor();
      await running.getByText(/running for [1-9]\d*s/).waitFor();
      assert.equal(await running.getAttribute("data-iteration"), "0");
      await page.getByRole("button", { name: "Pause", exact: true }).click();
      await page.getByTestId("finishing").getByText("is finishing").waitFor();
      await page.locator("header").getByText("finishing step 0").waitFor();
      await running.waitFor();
      const typist = await world.api.create("typist", { params: { word_ms: 1500 } });
      await open(`/sessions/${typist.session_id}`);
      await world.api.post(`/api/sessions/${typist.session_id}/interrupt`, {
        guidance: "begin uses:files/read uses:time/now then done",
      });
      await page.getByTestId("running-tools").getByText("files/read → time/now").waitFor();
      await running.getByText("attempt 1 of 3").waitFor();
      await running.waitFor({ state: "detached" });
      await stepRow(page, 0).waitFor();
    },
  );

  test("has a timeline that follows, and that a switch holds still", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 100_000, delay_ms: 50 } });
    await open(`/sessions/${session_id}`);
    await untilStep(page, 3);
    await page.getByRole("switch", { name: "Freeze the list" }).check();
    const shown = await lastStep(page);
    await page
      .getByTestId("held")
      .filter({ hasText: /^\d+ new rows waiting/ })
      .waitFor();
    assert.equal(await lastStep(page), shown);
    await page.keyboard.press("u");
    await untilStep(page, shown + 4);
    await world.control(session_id, "destroy");
  });

  test(
    "shows of a step its state, what it changed, its guidance and by whom, notes, tokens and latency",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const { session_id } = await world.api.create("typist", { params: { word_ms: 0 } });
      const say = async (guidance: string) => {
        const payload = { guidance };
        const sent = await world.api.post("/api/actions", {
          action_type: "agent_interrupt",
          session_id,
          payload,
          metadata: { user_id: "ann" },
        });
        await world.consumed((JSON.parse(sent.text) as { action_id: string }).action_id);
      };
      await say("first line");
      await say("second longer line");
      await open(`/sessions/${session_id}`);
      await stepRow(page, 1).click();
      await page.waitForURL(/step=1/);
      const detail = page.getByTestId("step-detail");
      await detail.getByTestId("changes").waitFor();
      assert.deepEqual(await detail.getByTestId("changes").locator("li").allTextContents(), [
        "last changed−first line+second longer line",
        "count changed−1+2",
        "lines[1] added+second longer line",
      ]);
      await detail
        .getByTestId("consumed")
        .filter({ hasText: /second longer line.*by ann/ })
        .waitFor();
      const text = (await detail.textContent()) ?? "";
      for (const part of [/typed 18 letters/, /Model tokens3/, /Latency[\d.]+ ms/, /Step → next1 → 2/, /"count": 2/])
        assert.match(text, part);
      await page.keyboard.press("k");
      await detail.getByRole("heading", { name: "Step 0" }).waitFor();
    },
  );

  test("shows why a step failed, and tries it again", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const params = { to: 3, fail_at: 1, fail_times: 1 };
    const { session_id } = await world.api.create("count", { params, options: NO_RETRY });
    await world.status(session_id, "error");
    await open(`/sessions/${session_id}?step=1`);
    await header(page).getByRole("alert").getByText("told to fail at 1").waitFor();
    await page.getByTestId("step-detail").getByText("told to fail at 1").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await header(page).locator("[data-status=done]").waitFor();
    await page.getByTestId("step-detail").waitFor();
  });

  test("draws latency and tokens of all its steps, whatever the browser calls its language", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await page.addInitScript(
      "Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true })",
    );
    const { session_id } = await world.api.create("count", { params: { to: 2000 } });
    await world.ended(session_id);
    await open(`/sessions/${session_id}?tab=plots`);
    await page.getByText("Steps 0 to 2000, the highest of every 4 steps").waitFor();
    for (const name of ["Latency per step", "Tokens per step"])
      await page.getByRole("figure", { name }).locator("canvas").waitFor();
  });

  test("is paused, resumed and, once confirmed, destroyed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 100_000, delay_ms: 30 } });
    await open(`/sessions/${session_id}`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await header(page).locator("[data-status=paused]").waitFor();
    await page.keyboard.press("p");
    await header(page).locator("[data-status=running]").waitFor();
    await page.getByRole("button", { name: "Destroy…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep it" }).click();
    assert.equal((await world.api.session(session_id)).status, "running");
    await page.getByRole("button", { name: "Destroy…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
    await header(page).locator("[data-status=stopped]").waitFor();
    await page.getByText("Fork it to continue").waitFor();
  });

  test("is guided now, which cuts the running step short and runs it again with the words", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist", { params: { word_ms: 1500 } });
    await open(`/sessions/${session_id}`);
    await world.api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "slow words" });
    await page.getByTestId("running-row").waitFor();
    await page.keyboard.press("m");
    await page.keyboard.type("hurry");
    await page.getByRole("radio", { name: "Now" }).check();
    await page.getByRole("button", { name: "Send guidance" }).click();
    await page.getByRole("tab", { name: "Receipts" }).click();
    const receipt = page.getByTestId("receipt").filter({ hasText: "hurry" });
    await receipt.getByText("consumed at step 0").waitFor();
    assert.deepEqual((await world.api.session(session_id)).result, "slow words hurry");
  });

  test("is forked from a step, and the fork compared with its parent side by side", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const options = { step_interval_ms: 0, max_steps: 6 };
    const { session_id } = await world.api.create("joke", {
      agent_id: `forked ${newId()}`,
      params: { subject: "tea" },
      options,
    });
    await world.status(session_id, "stopped");
    await open(`/sessions/${session_id}?step=2`);
    await page.getByRole("button", { name: "Fork from here…" }).click();
    await page.getByRole("textbox", { name: /Guidance for its first step/ }).fill("rain");
    await page.getByRole("button", { name: "Fork from step 2" }).click();
    await page.waitForURL((url) => url.pathname.startsWith("/sessions/") && !url.pathname.includes(session_id));
    await stepRow(page, 3).getByText("rain").first().waitFor();
    await page.getByRole("link", { name: "Compare with its parent" }).click();
    await page.getByText("They are identical up to step 2.").waitFor();
    const marked = page.getByTestId("comparison").locator("mark");
    await marked.filter({ hasText: "rain" }).first().waitFor();
    await marked.filter({ hasText: "tea" }).first().waitFor();
  });

  test("is exported as JSON, whole", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 3 } });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export as JSON" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), `session-${session_id}.json`);
    const exported = JSON.parse(await readFile(await download.path(), "utf8")) as {
      session: JsonObject;
      steps: JsonObject[];
      actions: JsonObject[];
    };
    assert.deepEqual(exported.session, JSON.parse(JSON.stringify(await world.api.session(session_id))));
    assert.deepEqual(
      exported.steps.map(({ state }) => state),
      [0, 1, 2, 3].map((n) => ({ n })),
    );
    assert.deepEqual(
      exported.actions.map(({ action_type }) => action_type),
      ["agent_create"],
    );
  });

  test("of many steps is opened at any of them, and scrolls to both ends", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 2500 } });
    await world.ended(session_id);
    await open(`/sessions/${session_id}?step=700`);
    await stepRow(page, 700).waitFor();
    assert.ok((await page.getByTestId("step-row").count()) < 60);
    await page.getByRole("button", { name: "Jump to the newest of 2,501" }).click();
    await stepRow(page, 2500).waitFor();
    const list = page.getByRole("region", { name: "Steps" });
    // Earlier steps are read each time their end scrolls into view.
    for (const iteration of [2300, 2100])
      await eventually(`step ${iteration} is read`, async () => {
        await scrollToPart(list, 0);
        return Math.min(...(await stepsShown(page))) <= iteration;
      });
  });
});
