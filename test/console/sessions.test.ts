import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { newId } from "../../src/domain/ids.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const rowOf = (page: Page, session_id: string) =>
  page.locator(`[data-testid=session-row][data-session="${session_id}"]`);
const agentsShown = (page: Page) => page.locator("[data-testid=session-row] a").allTextContents();

describe("the list of sessions", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("says what to do next where there is nothing", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open(`/?agent=${newId()}`);
    await page.getByText("No matching sessions").waitFor();
    await page.getByRole("link", { name: "Show all sessions" }).click();
    await page.waitForURL("/");
  });

  test("shows a session that starts, and follows its status, iteration, text, tokens and age", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await open("/");
    const { session_id } = await world.api.create("typist", { agent_id: "live", params: { word_ms: 0 } });
    const row = rowOf(page, session_id);
    await row.getByText("waiting").waitFor();
    assert.match((await row.textContent()) ?? "", /live.*typist0–/);
    await world.api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "three words here" });
    await row.getByText("three words here").waitFor();
    const cells = await row.locator("> *").allTextContents();
    assert.deepEqual(cells.slice(3, 7), ["typist", "1", "three words here", "3"]);
    assert.match(cells.at(-1) ?? "", /^\d+s$/);
    await world.control(session_id, "pause");
    await row.locator("[data-status=paused]").waitFor();
  });

  test("is filtered by status, moniker and words, in the address too", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const word = newId();
    const made = async (agent_id: string, moniker: string) =>
      world.api.create(moniker, { agent_id: `${word} ${agent_id}` });
    const paused = await made("first", "echo");
    await world.control(paused.session_id, "pause");
    await made("second", "echo");
    await made("Zürich", "chat");
    await open("/");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill(word.toLowerCase());
    await page.getByTestId("total").filter({ hasText: "3 sessions" }).waitFor();
    await page.getByRole("combobox", { name: "Moniker" }).selectOption("echo");
    await page.getByTestId("total").filter({ hasText: "2 sessions" }).waitFor();
    await page.getByRole("group", { name: "Status" }).getByRole("button", { name: "paused" }).click();
    await page.getByTestId("total").filter({ hasText: "1 session" }).waitFor();
    const address = new URL(page.url());
    assert.deepEqual(Object.fromEntries(address.searchParams), {
      q: word.toLowerCase(),
      moniker: "echo",
      status: "paused",
    });
    await page.reload();
    await rowOf(page, paused.session_id).waitFor();
    assert.equal((await agentsShown(page)).length, 1);
    await open(`/?q=${encodeURIComponent(`${word} zurich`)}`);
    await page.getByTestId("total").filter({ hasText: "1 session" }).waitFor();
  });

  test("is walked through and opened by keyboard", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const agent_id = `keys ${newId()}`;
    const older = await world.api.create("echo", { agent_id });
    const newer = await world.api.create("echo", { agent_id });
    await open(`/?agent=${encodeURIComponent(agent_id)}`);
    await rowOf(page, newer.session_id).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    assert.ok(await rowOf(page, older.session_id).getByRole("checkbox").isChecked());
    await page.keyboard.press("Escape");
    assert.equal(await rowOf(page, older.session_id).getByRole("checkbox").isChecked(), false);
    await page.keyboard.press("Enter");
    await page.waitForURL(`/sessions/${older.session_id}`);
  });

  test("counts what a bulk action means before it does it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const agent_id = `bulk ${newId()}`;
    const waiting = await Promise.all([1, 2, 3].map(() => world.api.create("echo", { agent_id })));
    const done = await world.api.create("count", { agent_id, params: { to: 0 } });
    await world.status(done.session_id, "done");
    await open(`/?agent=${encodeURIComponent(agent_id)}`);
    await rowOf(page, done.session_id).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Select all 4" }).click();
    await page.getByTestId("selected").filter({ hasText: "4 sessions selected" }).waitFor();
    await page.getByRole("button", { name: "Pause…" }).click();
    const dialog = page.getByRole("dialog", { name: "Pause 3 sessions?" });
    await dialog.waitFor();
    assert.deepEqual((await dialog.locator("tr").allTextContents()).sort(), [
      "done1does not change",
      "waiting3will be paused",
    ]);
    assert.equal((await world.api.session(waiting[0]?.session_id ?? "")).status, "waiting", "nothing happened yet");
    await dialog.getByRole("button", { name: "Pause 3 sessions" }).click();
    for (const { session_id } of waiting) await rowOf(page, session_id).locator("[data-status=paused]").waitFor();
    await page.getByText("Paused 3 sessions").waitFor();
  });

  test(
    "goes back through its filters, drops what they hide from the selection, and offers only what can be done",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      const agent_id = `back ${newId()}`;
      const waiting = await world.api.create("echo", { agent_id });
      const done = await world.api.create("count", { agent_id, params: { to: 0 } });
      await world.status(done.session_id, "done");
      await open(`/?agent=${encodeURIComponent(agent_id)}`);
      await rowOf(page, done.session_id).getByRole("checkbox").check();
      for (const name of ["Pause…", "Resume…", "Destroy…"])
        assert.ok(await page.getByRole("button", { name }).isDisabled(), `${name} changes nothing`);
      const filters = page.getByRole("group", { name: "Status" });
      await filters.getByRole("button", { name: "waiting" }).click();
      await rowOf(page, done.session_id).waitFor({ state: "detached" });
      assert.equal(await page.getByTestId("selected").count(), 0);
      await rowOf(page, waiting.session_id).getByRole("checkbox").check();
      const pause = page.getByRole("button", { name: "Pause…" });
      await pause.click();
      await page.getByRole("dialog", { name: "Pause 1 session?" }).getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.locator("button:focus", { hasText: "Pause…" }).waitFor();
      const search = page.getByRole("searchbox", { name: "Search sessions" });
      await search.fill("echo");
      await page.waitForURL(/q=echo/);
      await rowOf(page, waiting.session_id).getByRole("link").click();
      await eventually(
        "the tab says who and how",
        async () => (await page.title()) === `${agent_id} · waiting · Everstep`,
      );
      await page.goBack();
      await rowOf(page, waiting.session_id).waitFor();
      assert.equal(await search.inputValue(), "echo");
      await filters.locator("[aria-pressed=true]").getByText("waiting").waitFor();
      await page.goBack();
      await rowOf(page, done.session_id).waitFor();
      assert.equal(await search.inputValue(), "");
      assert.equal(await page.title(), "Sessions · Everstep");
      assert.deepEqual(
        requests.filter((url) => /offset=-/.test(url)),
        [],
      );
    },
  );

  test("lists agents with their sessions' states and leads to them", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const agent_id = `twice ${newId()}`;
    await world.api.create("echo", { agent_id });
    await world.api.create("echo", { agent_id });
    await open("/agents");
    const entry = page.getByTestId("agent").filter({ hasText: agent_id });
    await page.getByRole("columnheader", { name: "By status" }).waitFor();
    await entry.getByRole("link", { name: "2 sessions" }).click();
    await page.getByTestId("total").filter({ hasText: "2 sessions" }).waitFor();
    await page.goBack();
    await entry.getByRole("link", { name: "waiting 2" }).click();
    await page.getByTestId("total").filter({ hasText: "2 sessions" }).waitFor();
    assert.match(page.url(), /status=waiting/);
  });
});
