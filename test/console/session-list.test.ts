import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { newId } from "../../src/domain/ids.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { drawn } from "./in-page.ts";

const shownIds = (page: Page): Promise<string[]> =>
  page.evaluate("[...document.querySelectorAll('[data-testid=session-row]')].map((row) => row.dataset.session)");
const shows = (page: Page, ids: string[]): Promise<boolean> =>
  eventually(`the list is ${ids.join(", ")}`, async () => (await shownIds(page)).join() === ids.join());

describe("the list of sessions", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("has live ones first, and is ordered by a click on a column", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const agent_id = `ordered ${newId()}`;
    const make = async (moniker: string, params = {}) =>
      (await world.api.create(moniker, { agent_id, params })).session_id;
    const first = await make("echo");
    const second = await make("count", { to: 1 });
    await world.status(second, "done");
    const third = await make("echo");
    const fourth = await make("count", { to: 1 });
    await world.status(fourth, "done");
    await open(`/?agent=${encodeURIComponent(agent_id)}`);
    await shows(page, [third, first, fourth, second]);
    await page.getByRole("button", { name: "newest first" }).click();
    await shows(page, [fourth, third, second, first]);
    await page.getByRole("button", { name: "recently updated first" }).click();
    await world.api.post(`/api/sessions/${first}/interrupt`, { guidance: "hello" });
    await eventually("it moved to the top", async () => (await shownIds(page))[0] === first);
    await page.goBack();
    await shows(page, [fourth, third, second, first]);
    await page.getByRole("button", { name: "most steps first" }).click();
    await eventually("those with most steps are first", async () => {
      const ids = await shownIds(page);
      return ids.slice(0, 2).toSorted().join() === [second, fourth].toSorted().join() && ids[2] === first;
    });
    await page.getByRole("button", { name: "by moniker" }).click();
    await shows(page, [fourth, second, third, first]);
    await page.getByRole("button", { name: "live first" }).click();
    await shows(page, [third, first, fourth, second]);
    assert.deepEqual(await brokenRules(page), []);
  });

  test("names children by the end of their parent's id and their own number", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const child = { action_type: "agent_create", agent_id: `child ${newId()}`, moniker: "count", params: { to: 0 } };
    const { session_id } = await world.api.create("script", { params: { frames: [{ actions: [child] }] } });
    await world.status(session_id, "done");
    await world.status(`${session_id}.0.0`, "done", "stopped");
    await open(`/?agent=${encodeURIComponent(child.agent_id)}`);
    await page.getByText(`${session_id.slice(-5)}.0.0`, { exact: true }).waitFor();
  });

  test("shows those of a time, and groups them by agent", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const word = newId();
    const [ada, ben] = [`ada ${word}`, `ben ${word}`];
    for (const agent_id of [ada, ben, ada]) await world.api.create("echo", { agent_id });
    await open(`/?q=${word}`);
    const request = page.waitForRequest((sent) => /session-summaries\?.*since=/.test(sent.url()));
    await page.getByLabel("Time").selectOption("Last hour");
    await page.getByTestId("total").getByText("3 sessions").waitFor();
    assert.match(page.url(), /range=1h/);
    const since = await request;
    const age = Date.now() - Date.parse(new URL(since.url()).searchParams.get("since") ?? "");
    assert.ok(Math.abs(age - 3_600_000) < 120_000, `asked for the last ${age} ms`);
    await page.getByLabel("Group by agent").check();
    const groups = page.getByTestId("agent-group");
    await eventually("two groups", async () => (await groups.count()) === 2);
    assert.deepEqual(
      (await groups.allTextContents()).map((text) => text.replaceAll(/\s+/g, " ")),
      [`${ada}waiting 2`, `${ben}waiting 1`],
    );
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "grouped-few");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByTestId("selected").getByText("1 session selected").waitFor();
  });

  test("keeps views by name in the browser", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await world.api.create("echo", { agent_id: `viewed ${newId()}` });
    await open("/?status=waiting&order=created");
    await page.getByRole("button", { name: "Save this view…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("This is required.").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await dialog.getByLabel("Name").fill("Those that wait");
    await dialog.getByRole("button", { name: "Save" }).click();
    await open("/");
    await page.getByRole("link", { name: "Those that wait" }).click();
    await page.waitForURL(/status=waiting&order=created/);
    await page.getByRole("button", { name: "newest first", pressed: true }).waitFor();
    await page.getByRole("button", { name: "Remove the view Those that wait" }).click();
    await page.getByRole("button", { name: "Save this view…" }).waitFor();
    await open("/");
    assert.equal(await page.getByRole("link", { name: "Those that wait" }).count(), 0);
  });

  test("is where it was after Back, filters and place", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const agent_id = `many ${newId()}`;
    for (let made = 0; made < 60; made++) await world.api.create("echo", { agent_id });
    await open(`/?agent=${encodeURIComponent(agent_id)}&status=waiting`);
    await page.getByTestId("total").getByText("60 sessions").waitFor();
    const list = page.getByRole("region", { name: "Sessions" });
    await list.hover();
    await page.mouse.wheel(0, 900);
    const top = () => list.evaluate((element: unknown) => (element as { scrollTop: number }).scrollTop);
    await eventually("it scrolled", async () => (await top()) > 800);
    await drawn(page);
    // A row in the middle: a click would scroll one at the edge into view. While the list moves, no element is at that point.
    const middle = await eventually("it stands still", () =>
      page.evaluate<string | undefined>(
        "document.elementsFromPoint(700, 500).find((element) => element.dataset?.session)?.dataset.session",
      ),
    );
    const before = await top();
    await page.locator(`[data-session="${middle}"]`).getByRole("link").click();
    await page.waitForURL("**/sessions/*");
    await page.goBack();
    await eventually("it is where it was", async () => Math.abs((await top()) - before) < 2);
    assert.match(page.url(), /status=waiting/);
  });
});

describe("the palette", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("finds pages, sessions, agents and commands by keyboard", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const word = newId().toLowerCase();
    const { session_id } = await world.api.create("count", {
      agent_id: `Ada ${word}`,
      params: { to: 100_000, delay_ms: 500 },
    });
    await open("/");
    const press = async (text: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Find" }).fill(text);
    };
    await press("webh");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/webhooks");
    await press(word);
    await page.getByRole("option", { name: `Ada ${word} sessions` }).waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "palette");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/sessions/${session_id}`);
    await press("pause this");
    await page.keyboard.press("Enter");
    await world.status(session_id, "paused");
    await press(word);
    await page.getByRole("option", { name: `Ada ${word} sessions` }).click();
    await page.waitForURL(/agent=Ada/);
    await press("start coun");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/start?moniker=count");
    await press("nothing has this name");
    await page.getByText("No matches.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("combobox", { name: "Find" }).waitFor({ state: "detached" });
  });
});
