import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { scrollToPart } from "./in-page.ts";

const MANY = 10_000;
const AT_ONCE = 200;
/** What is in view and a little around it. */
const MOST_ROWS = 60;

describe("ten thousand sessions", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("are scrolled from the first to the last with only those in view on the page", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await createMany(world);
    await open("/");
    await page.getByTestId("total").filter({ hasText: "10,000 sessions" }).waitFor();
    const list = page.getByRole("region", { name: "Sessions" });
    const rows = page.getByTestId("session-row");
    for (const share of [0.25, 0.5, 0.75, 1]) {
      await scrollToPart(list, share);
      const inView = page.locator(`[data-testid=session-row] a`, { hasText: `agent ${nearest(share)}` });
      await inView.first().waitFor();
      assert.ok((await rows.count()) <= MOST_ROWS, `${await rows.count()} rows are on the page`);
    }
    assert.match((await rows.last().textContent()) ?? "", /waitingagent 0[0-9A-Z]{5}echo/, "the oldest is the last");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("agent 7777");
    await page
      .getByTestId("total")
      .filter({ hasText: /^1 session$/ })
      .waitFor();
  });
});

/** The agent that stands at about that part of the list, by the beginning of its name. */
function nearest(share: number): string {
  return share === 1 ? "0" : String(Math.round((1 - share) * MANY) - 10).slice(0, 2);
}

/** The newest has the highest number. */
async function createMany({ api }: World): Promise<void> {
  for (let at = 0; at < MANY; at += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) => api.create("echo", { agent_id: `agent ${at + index}` })),
    );
}
