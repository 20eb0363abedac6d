import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { pathOf } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const bubbles = (page: Page, sender: "user" | "agent") => page.locator(`[data-testid=message][data-sender=${sender}]`);

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("textbox", { name: "Message" }).press("Control+Enter");
}

describe("conversations", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("are opened, joined by an agent and a person, and held", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/conversations");
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("textbox", { name: "Title" }).fill("Release notes");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Release notes", level: 1 }).waitFor();
    await page.getByText("Add an agent, then").waitFor();
    await page.getByRole("button", { name: "Add an agent" }).click();
    await page.getByRole("combobox", { name: "Agent" }).selectOption("new:echo");
    await page.getByRole("textbox", { name: "Name" }).fill("parrot");
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    const parrot = page.getByTestId("participant").filter({ hasText: "parrot" });
    await parrot.locator("[data-status=waiting]").waitFor();
    await page.getByRole("button", { name: "Add a person" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Ada");
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await page.getByTestId("participant").filter({ hasText: "Ada" }).waitFor();
    await say(page, "Hello there");
    await bubbles(page, "agent").getByText("Hello there").waitFor();
    await bubbles(page, "user").getByText("consumed at step 0").waitFor();
    await parrot.getByText("1 step").waitFor();
  });

  test("are joined by a new agent with the parameters that its moniker asks for", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation({ title: "Parameters" });
    await open(`/conversations/${conversation_id}`);
    await page.getByRole("button", { name: "Add an agent" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Agent" }).selectOption("new:agent");
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.getByText("This is required.").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await dialog.getByRole("combobox", { name: "Agent" }).selectOption("new:typist");
    await dialog.getByLabel("word_ms").fill("99999");
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.locator("[name='params.word_ms'][aria-invalid=true]").waitFor();
    await picture(page, "add-agent");
    await dialog.getByLabel("word_ms").fill("0");
    await dialog.getByLabel("tone").selectOption("loud");
    await dialog.getByLabel("signature").fill("Yours, Ann");
    await dialog.getByLabel("Name").fill("ann");
    await dialog.getByRole("button", { name: "Add" }).click();
    await page.getByTestId("participant").filter({ hasText: "ann" }).waitFor();
    await say(page, "hello");
    await bubbles(page, "agent").getByText("HELLO Yours, Ann").waitFor();
  });

  test("fold a message of 200 KB until the whole of it is wanted", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation({ title: "Long" });
    const text = `${"A line of some words.\n\n".repeat(9000)}The **end** of it.`;
    await world.api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text });
    await open(`/conversations/${conversation_id}`);
    const message = bubbles(page, "user");
    await message.getByText("A line of some words.").first().waitFor();
    assert.equal(await message.getByText("of it.").count(), 0);
    assert.ok(((await message.textContent()) ?? "").length < 5000);
    assert.deepEqual(await brokenRules(page), []);
    await message.getByRole("button", { name: "Show all 203 KB" }).click();
    await message.getByText("of it.").waitFor({ state: "attached" });
    await message.getByRole("button", { name: "Show less" }).click();
    await message.getByRole("button", { name: "Show all 203 KB" }).waitFor();
  });

  for (const [what, mark] of [
    ["quotes", "> "],
    ["lists", "1. "],
  ])
    test(`show a message of 2,000 ${what} inside each other, and what comes after it`, TIMEOUT, async (t) => {
      const { page, world, open } = await visit(t);
      const conversation_id = await world.api.conversation({ title: "Deep" });
      const path = pathOf("conversations", conversation_id, "messages");
      for (const text of [`${mark?.repeat(2000)}deep`, "**after**"])
        await world.api.post(path, { user_id: "eve", text });
      await open(`/conversations/${conversation_id}`);
      await bubbles(page, "user").locator("strong", { hasText: "after" }).waitFor();
      await bubbles(page, "user")
        .getByText(`${mark?.repeat(100)}deep`)
        .waitFor();
    });

  test("open at the newest message in a slow browser, below one that is long", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation({ title: "Slow" });
    const path = pathOf("conversations", conversation_id, "messages");
    for (const text of [`${"1. ".repeat(2000)}deep`, "**after**"]) await world.api.post(path, { user_id: "eve", text });
    const browser = await page.context().newCDPSession(page);
    await browser.send("Emulation.setCPUThrottlingRate", { rate: 10 });
    await open(`/conversations/${conversation_id}`);
    await bubbles(page, "user").locator("strong", { hasText: "after" }).waitFor();
  });

  test("render Markdown and code, and nothing that could do harm", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation({ title: "Markdown" });
    const text = [
      "**bold** and `code`",
      "```\nnpm start\n```",
      "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>",
      "[a link](javascript:document.title='broken') [a good one](https://example.org)",
      '<form action="/api/agents"><input name="q"></form><a href="/x" onclick="document.title=1" style="position:fixed">x</a>',
    ].join("\n\n");
    await world.api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "eve", text });
    await open(`/conversations/${conversation_id}`);
    const prose = bubbles(page, "user").locator(".prose");
    await prose.locator("strong", { hasText: "bold" }).waitFor();
    await prose.locator("pre code", { hasText: "npm start" }).waitFor();
    for (const harmful of ["img", "script", "form", "input", "[onclick]", "[style]", '[href^="javascript"]'])
      assert.equal(await prose.locator(harmful).count(), 0, harmful);
    const link = prose.getByRole("link", { name: "a good one" });
    assert.deepEqual(
      [await link.getAttribute("rel"), await link.getAttribute("target")],
      ["noopener noreferrer", "_blank"],
    );
    assert.doesNotMatch(await page.title(), /broken/);
  });

  test("show an agent's text while it grows", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation();
    await world.api.create("typist", { conversation_id, params: { word_ms: 1000 } });
    await open(`/conversations/${conversation_id}`);
    // Words that are typed before the page follows the conversation are not shown while they grow.
    await say(page, "ready");
    await bubbles(page, "agent").getByText("ready").waitFor();
    await say(page, "slowly but surely");
    const speaking = page.getByTestId("speaking");
    await speaking.getByText("slowly", { exact: false }).waitFor();
    assert.doesNotMatch((await speaking.textContent()) ?? "", /surely/);
    await bubbles(page, "agent").getByText("slowly but surely").waitFor();
    await speaking.waitFor({ state: "detached" });
  });

  test("reach only those who are addressed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation();
    await world.api.create("echo", { agent_id: "north", conversation_id });
    const south = await world.api.create("echo", { agent_id: "south", conversation_id });
    await open(`/conversations/${conversation_id}`);
    await page.getByRole("group", { name: "Recipients" }).getByRole("button", { name: "south" }).click();
    await say(page, "only you");
    await bubbles(page, "agent").getByText("only you").waitFor();
    assert.match((await bubbles(page, "agent").textContent()) ?? "", /^south/);
    await world.iteration(south.session_id, 0);
    assert.equal(await bubbles(page, "agent").count(), 1);
  });

  test("lead from a message to the step that said it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation();
    const { session_id } = await world.api.create("echo", { conversation_id });
    await open(`/conversations/${conversation_id}`);
    await say(page, "where from");
    await bubbles(page, "agent").getByRole("link", { name: "step 0" }).click();
    await page.waitForURL(`/sessions/${session_id}?step=0`);
    await page.getByTestId("step-detail").waitFor();
  });

  test("that are unknown say so and lead back", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/conversations/nowhere");
    await page.getByText("Conversation not found").waitFor();
    await page.getByRole("link", { name: "Show all conversations" }).click();
    await page.getByRole("heading", { name: "Conversations" }).waitFor();
  });
});
