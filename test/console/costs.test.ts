import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { sharedModelServer } from "../llm/llm-fixture.ts";
import { reply } from "../llm/model-server.ts";
import { Api } from "../server/api.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { brokenRules, picture, visitConsole, WITH_BROWSER } from "./console-fixture.ts";

describe("the page of costs", WITH_BROWSER, () => {
  const model = sharedModelServer();

  test("sums up dollars by day, agent and model, and leads to an agent's sessions", TIMEOUT, async (t) => {
    await using folder = await scratchFolder();
    const prices = join(folder.path, "prices.json");
    await writeFile(prices, JSON.stringify({ "openai/mine": { input: 1000, output: 2000, cache_read: 100 } }));
    await using server = await ServerProcess.start({
      EVERSTEP_MODEL: "openai/mine",
      OPENAI_BASE_URL: model().url,
      EVERSTEP_PRICES: prices,
    });
    const api = new Api(server.url);
    const { page, open } = await visitConsole(t, server.url);
    await open("/");
    await page.getByRole("link", { name: "Costs" }).click();
    await page.getByText("No usage in this period").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    // 500 at full price, 500 cached, 100 written: 0.5 + 0.05 + 0.2 dollars for each of two steps.
    model().otherwise(reply('{"text": "A joke."}', { usage: { input: 1000, output: 100, cached: 500 } }));
    for (const [agent_id, options] of [
      ["ada", {}],
      ["ben", { model: "openai/nobody-knows-its-price" }],
    ] as const) {
      const limits = { max_steps: 2, step_interval_ms: 0 };
      const { session_id } = await api.create("joke", { agent_id, options: { ...limits, ...options } });
      await eventually("the jokes", async () => (await api.session(session_id)).status === "stopped");
    }
    await page.reload();
    const rows = page.getByTestId("cost");
    const texts = async () => (await rows.allTextContents()).map((text) => text.replaceAll(",", ""));
    const today = new Date().toISOString().slice(0, 10);
    await page.getByRole("heading", { name: "Costs $1.50 in 30 days" }).waitFor();
    assert.deepEqual(await texts(), [`${today}24400$1.50`]);
    assert.equal(await page.getByTestId("days").locator("[data-day]").count(), 30);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "costs");
    await page.getByLabel("Time").selectOption("7");
    await eventually("seven days", async () => (await page.locator("[data-day]").count()) === 7);
    await page.getByRole("button", { name: "By model" }).click();
    await page.getByRole("columnheader", { name: "Model" }).waitFor();
    assert.deepEqual(await texts(), ["openai/mine12200$1.50", "openai/nobody-knows-its-price12200–"]);
    await page.getByRole("button", { name: "By agent" }).click();
    await page.getByRole("link", { name: "ada" }).click();
    await page.getByTestId("total").getByText("1 session").waitFor();
    await page.goBack();
    await page.getByRole("columnheader", { name: "Agent" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "By agent" }).getAttribute("aria-pressed"), "true");
  });
});
