import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import { pathOf } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

describe("starting an agent", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("is a form made from the moniker's own parameters", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await open("/");
    await page.keyboard.press("n");
    await page.getByRole("radio", { name: /typist/ }).check();
    assert.equal(await page.getByRole("spinbutton", { name: "word_ms" }).inputValue(), "150");
    await page.getByRole("spinbutton", { name: "word_ms" }).fill("1");
    assert.deepEqual(await page.getByRole("combobox", { name: "tone" }).locator("option").allTextContents(), [
      "plain",
      "loud",
    ]);
    await page.getByRole("combobox", { name: "tone" }).selectOption("loud");
    await page.getByRole("textbox", { name: "signature" }).fill("-- me");
    await page.getByRole("textbox", { name: "Agent name" }).fill("shouter");
    await page.getByText("Limits and pace").click();
    await page.getByRole("spinbutton", { name: "Maximum steps" }).fill("5");
    await page.getByRole("button", { name: "Start typist" }).click();
    await page.waitForURL(/\/sessions\//);
    await page.getByRole("heading", { name: "shouter" }).waitFor();
    const session = await world.api.session(new URL(page.url()).pathname.split("/").at(-1) ?? "");
    assert.deepEqual(session.params, { word_ms: 1, tone: "loud", signature: "-- me" });
    assert.equal(session.options.max_steps, 5);
  });

  test("says at the field what is wrong with it", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/start?moniker=count");
    await page.getByRole("button", { name: "Start count" }).click();
    const field = page.getByRole("spinbutton", { name: "to", exact: true });
    await page.locator("[aria-invalid=true]").waitFor();
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    await field.fill("3");
    await page.getByRole("button", { name: "Start count" }).click();
    await page.waitForURL(/\/sessions\//);
  });
});

describe("search", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("finds words in steps and messages and jumps to them", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const word = `word${newId().toLowerCase()}`;
    const { session_id } = await world.api.create("script", {
      agent_id: "finder",
      params: { frames: [{ text: "nothing" }, { text: `a ${word} in a step` }] },
    });
    await world.status(session_id, "done");
    const conversation_id = await world.api.conversation({ title: "Where words are" });
    const path = pathOf("conversations", conversation_id, "messages");
    await world.api.post(path, { user_id: "ann", text: `a ${word} in a message` });
    await open("/search");
    await page.getByRole("searchbox", { name: "Search all history" }).fill(word.toUpperCase());
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("2 hits").waitFor();
    await page.getByTestId("hit").getByText("Step 1 of finder").waitFor();
    await page.getByTestId("hit").getByText("Message in Where words are").waitFor();
    assert.equal(await page.locator("mark").count(), 2);
    await page.getByTestId("hit").filter({ hasText: "in a step" }).getByRole("link").click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 1" }).waitFor();
    await page.goBack();
    await page.getByTestId("hit").filter({ hasText: "in a message" }).getByRole("link").click();
    await page.getByTestId("message").getByText("in a message").waitFor();
    await open(`/search?q=${word}x`);
    await page.getByText("No matches").waitFor();
  });
});

describe("the system page", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("shows the queue, the workers, the store and the throughput", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await world.api.create("echo");
    await open("/system");
    const figure = (name: string) =>
      page.getByRole("term").filter({ hasText: name }).locator("xpath=following-sibling::dd[1]");
    await figure("Live sessions")
      .getByText(/^[1-9]/)
      .first()
      .waitFor();
    for (const [name, text] of [
      ["Queue depth", /^0unprocessed actions/],
      ["Queue lag", /^0 ms/],
    ] as const)
      await figure(name).filter({ hasText: text }).waitFor();
    assert.match((await figure("Store").textContent()) ?? "", /^lancedb/);
    const worker = page.getByRole("row").filter({ hasText: String(world.server.pid) });
    assert.match((await worker.textContent()) ?? "", /0 of 500/);
    for (const name of ["Steps", "Tokens", "Step latency", "Failed steps"])
      await page.getByRole("figure", { name, exact: true }).locator("canvas").waitFor();
  });

  test("lists archives, and a session says that its steps come from one", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { agent_id: "old", params: { to: 41 } });
    await world.status(session_id, "done");
    await open("/system");
    await page.getByText("Nothing is archived.").waitFor();
    const archived = page.getByTestId("archived");
    await world.api.post("/api/archives", { operation: "archive", older_than: "0h" });
    await eventually("the session is archived", async () => {
      const { text } = await world.api.get("/api/archives");
      return /"state":"archived"/.test(text);
    });
    await open("/system");
    const volume = page.getByTestId("volume");
    assert.match((await volume.textContent()) ?? "", /^archive .*archived1420\d+ KB/);
    await page.getByText("The last job archived 1 session").waitFor();
    await open(`/sessions/${session_id}`);
    await archived.getByText("42 steps from the archive").waitFor();
    await page.getByRole("button", { name: "Open step 41" }).click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 41" }).waitFor();
    await world.api.post("/api/archives", { operation: "drop", older_than: "0h" });
    await eventually("the archive is deleted", async () => {
      const { text } = await world.api.get("/api/archives");
      return /"state":"dropped"/.test(text);
    });
    await open(`/sessions/${session_id}?tab=about`);
    await page.getByTestId("dropped").getByText("42 steps deleted with their archive").waitFor();
  });
});
