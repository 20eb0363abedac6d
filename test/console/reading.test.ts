import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import { Api, pathOf } from "../server/api.ts";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, sharedConsole, visitConsole, WITH_BROWSER } from "./console-fixture.ts";

const HOSTILE = `a/b%2F?c#d "quoted" <b>&amp; ёж 😀`;

describe("reading the console", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("times are in the reader's zone, with UTC on hover", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { timezoneId: "Asia/Tokyo" });
    const { session_id } = await world.api.create("count", { params: { to: 0 } });
    const { created_at } = await world.status(session_id, "done");
    await open(`/sessions/${session_id}?tab=about`);
    const time = page.locator(`time[datetime="${created_at}"]`).last();
    const shown = new Date(created_at).toLocaleString("en-US", { timeZone: "Asia/Tokyo" });
    assert.equal(((await time.textContent()) ?? "").replaceAll(/\s/g, " "), shown.replaceAll(/\s/g, " "));
    assert.equal(await time.getAttribute("title"), `${created_at.replace("T", " ").replace("Z", "")} UTC`);
  });

  test("an id of any characters has an address of its own", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const session_id = `${HOSTILE} ${newId()}`;
    await world.api.create("count", { agent_id: HOSTILE, session_id, params: { to: 2 } });
    await world.status(session_id, "done");
    await open(`/?q=${encodeURIComponent(session_id)}`);
    await page.getByTestId("session-row").getByRole("link").click();
    await page.getByRole("heading", { name: HOSTILE }).waitFor();
    await page.locator("[data-iteration='1']").click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 1" }).waitFor();
    await page.reload();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 1" }).waitFor();
    await page.locator("main header").filter({ hasText: "done" }).waitFor();
  });

  test("a text is shown as it was said, formatted or raw, in a step and in a conversation", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const said = "<thinking>x</thinking>I **did** Array<T>";
    const conversation_id = await world.api.conversation({ title: "Tags" });
    const { session_id } = await world.api.create("typist", { conversation_id, params: { word_ms: 0 } });
    await world.api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: said });
    await world.iteration(session_id, 0);
    await open(`/sessions/${session_id}?step=0`);
    const text = page.getByTestId("step-detail").locator(".prose");
    await text.locator("strong").waitFor();
    assert.equal(await text.innerText(), said.replaceAll("**", ""));
    await page.getByRole("switch", { name: "Raw text" }).check();
    assert.equal(await text.innerText(), said);
    await open(`/conversations/${conversation_id}`);
    const messages = page.getByTestId("message").locator(".prose");
    await messages.nth(1).waitFor();
    assert.deepEqual(await messages.allInnerTexts(), [said, said], "the choice holds everywhere");
    await page.getByRole("switch", { name: "Raw text" }).uncheck();
    await messages.locator("strong").nth(1).waitFor();
    assert.deepEqual(new Set(await messages.allInnerTexts()), new Set([said.replaceAll("**", "")]));
  });

  test("a form says in words what is required, and that the server is out of reach", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/start?moniker=count");
    const to = page.getByRole("spinbutton", { name: "to", exact: true });
    await to.locator("..").getByText("required", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Start count" }).click();
    await to.locator("..").getByText("This is required.").waitFor();
    assert.equal(await to.getAttribute("aria-invalid"), "true");
    await to.fill("1");
    await page.route("**/api/agents", (route) => route.abort());
    await page.getByRole("button", { name: "Start count" }).click();
    await page.getByRole("alert").getByText("The server cannot be reached.").waitFor();
  });

  test("what is unknown says so", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/sessions/nowhere");
    await page.getByText("Session not found").waitFor();
    await page.getByRole("link", { name: "Show all sessions" }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
  });

  test("every place is reached by keyboard, with a focus that can be seen", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/");
    const places = { n: "Needs me", c: "Conversations", a: "Agents", f: "Search", y: "System", s: "Sessions" };
    for (const [key, heading] of Object.entries(places)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor({ state: "attached" });
    }
    await page.reload();
    await page.getByRole("heading", { name: "Sessions", level: 1 }).waitFor();
    for (const name of ["Skip to content", "Everstep", "Find", "Sessions", "Needs me"]) {
      await page.keyboard.press("Tab");
      const focused = page.locator(":focus-visible");
      assert.match((await focused.textContent()) ?? "", new RegExp(name));
      const outline = await focused.evaluate("getComputedStyle(document.activeElement).outlineStyle");
      assert.match(String(outline), /solid|auto/);
    }
  });

  test("the shortcuts are told by a dialog, which Escape closes", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/");
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await dialog.getByText("Start an agent").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });
});

describe("a server that needs a token", WITH_BROWSER, () => {
  const server = sharedServer({ EVERSTEP_TOKEN: "open sesame" });

  test(
    "is asked for by the console, which says where it is wrong and remembers it where told to",
    TIMEOUT,
    async (t) => {
      const { page, open } = await visitConsole(t, server().url);
      const api = new Api(server().url, { authorization: "Bearer open sesame" });
      const conversation_id = await api.conversation({ title: "guarded" });
      await api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: "behind the door" });
      await page.goto(`/conversations/${conversation_id}`);
      const dialog = page.getByRole("dialog", { name: "This server needs a token" });
      await dialog.waitFor();
      assert.deepEqual(await brokenRules(page), []);
      await page.getByRole("button", { name: "Continue" }).click();
      await dialog.getByText("This is required.").waitFor();
      await page.locator("input[type=password]").fill("wrong");
      await page.getByRole("button", { name: "Continue" }).click();
      await dialog.getByText("The server refused this token.").waitFor();
      await page.locator("input[type=password]").fill("open sesame");
      await page.getByRole("checkbox", { name: "Remember it" }).check();
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByTestId("message").getByText("behind the door").waitFor();
      await page.getByTestId("connection").filter({ hasText: "live" }).waitFor();
      await open(`/conversations/${conversation_id}`);
      await page.getByTestId("message").getByText("behind the door").waitFor();
      assert.equal(await dialog.count(), 0);
    },
  );
});
