import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

describe("the search of all history", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("says how many hits there are, pages through them, and always in the same order", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const word = `kettle${newId()}`;
    const frames = Array.from({ length: 60 }, (_, at) => ({ text: `${word} ${at}` }));
    const { session_id } = await world.api.create("script", { params: { frames }, options: { step_interval_ms: 0 } });
    await world.iteration(session_id, 59);
    await open(`/search?q=${word}`);
    await page.getByTestId("hit-count").getByText("60 hits, 1 to 50 shown").waitFor();
    const hits = page.getByTestId("hit");
    const first = await hits.allTextContents();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByTestId("hit-count").getByText("51 to 60 shown").waitFor();
    const rest = await hits.allTextContents();
    assert.equal(new Set([...first, ...rest]).size, 60);
    assert.deepEqual(await brokenRules(page), []);
    await page.goBack();
    await page.getByText("Page 1 of 2").waitFor();
    await page.reload();
    await eventually("the same order", async () => (await hits.allTextContents()).join() === first.join());
  });
});
