import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { aSession, mustCommit } from "../store/fixtures.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { scrollToPart } from "./in-page.ts";

const MANY = 10_000;
const AT_ONCE = 500;
/** The rows in view and a few around them. */
const MOST_ROWS = 60;

const data = await scratchFolder();
await createMany(data.path);
after(() => data[Symbol.asyncDispose]());

describe("ten thousand sessions", WITH_BROWSER, () => {
  const visit = sharedConsole({ EVERSTEP_STORE: `lancedb:${data.path}` });

  test("are scrolled from the first to the last with only those in view on the page", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
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
    assert.match((await rows.last().textContent()) ?? "", /waitingagent 0 [0-9A-Z]{5}echo/, "the oldest is the last");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("agent 7777");
    await page
      .getByTestId("total")
      .filter({ hasText: /^1 session$/ })
      .waitFor();
  });

  test("that are too many to be sorted or grouped at once say which ones are", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/");
    await page.getByTestId("total").filter({ hasText: "10,000 sessions" }).waitFor();
    await page.getByRole("button", { name: "most steps first" }).click();
    await page.getByText("Sorted among the newest 500 only, of 10,000 sessions.").waitFor();
    await page.getByRole("button", { name: "newest first" }).click();
    await page.getByText("among the newest 500").waitFor({ state: "detached" });
    await page.getByLabel("Group by agent").check();
    await page.getByText("Grouped among the newest 500 only, of 10,000 sessions.").waitFor();
  });
});

/** The beginning of the name of the agent at about this fraction of the list. */
function nearest(share: number): string {
  return share === 1 ? "0" : String(Math.round((1 - share) * MANY) - 10).slice(0, 2);
}

/** The newest has the highest number. Written before the server starts: creating them one by one would take most of the test. */
async function createMany(folder: string): Promise<void> {
  const store = await openEmbeddedStore({ folder });
  for (let at = 0; at < MANY; at += AT_ONCE) {
    const sessions = Array.from({ length: AT_ONCE }, (_, index) =>
      aSession({ agent_id: `agent ${at + index}`, moniker: "echo", status: "waiting" }),
    );
    await mustCommit(store, { sessions: sessions.map((session) => ({ kind: "create", session, worker: null })) });
  }
  await store.close();
}
