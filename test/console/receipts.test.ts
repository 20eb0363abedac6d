import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { TIMEOUT } from "../server/server-fixture.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const receiptOf = (page: Page, words: string) => page.getByTestId("receipt").filter({ hasText: words });

async function send(page: Page, words: string): Promise<void> {
  await page.getByRole("textbox", { name: "Guidance" }).fill(words);
  await page.getByRole("button", { name: "Send guidance" }).click();
}

describe("the receipt of a person's word", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("goes from accepted over delivered to consumed at its step, live, and leads there", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist", { params: { word_ms: 0 } });
    await world.control(session_id, "pause");
    await open(`/sessions/${session_id}?tab=receipts`);
    await send(page, "remember the milk");
    await receiptOf(page, "remember the milk").getByText("waiting for the next step").waitFor();
    const receiptText = (await receiptOf(page, "remember the milk").textContent()) ?? "";
    assert.match(receiptText, /operator.*accepted→delivered→waiting for the next step/);
    await page.getByRole("button", { name: "Resume" }).click();
    await receiptOf(page, "remember the milk").getByRole("button", { name: "consumed at step 0" }).click();
    await page.getByTestId("consumed").getByText("by operator").waitFor();
  });

  test("says who sent it: the name beside the menu", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist", { params: { word_ms: 0 } });
    await open(`/sessions/${session_id}?tab=receipts`);
    await page.getByRole("textbox", { name: "You are" }).fill("Grace");
    await page.getByRole("textbox", { name: "You are" }).press("Enter");
    await send(page, "hello");
    await receiptOf(page, "hello").getByText("Grace").waitFor();
  });

  test("is bounced with the reason where the session ends first", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist", { params: { word_ms: 0 } });
    await world.control(session_id, "pause");
    await open(`/sessions/${session_id}?tab=receipts`);
    await send(page, "too late");
    await receiptOf(page, "too late").getByText("waiting for the next step").waitFor();
    await world.control(session_id, "destroy");
    await receiptOf(page, "too late")
      .getByText("bounced: the session ended first: it is stopped (destroyed)")
      .waitFor();
  });

  test("is shown, although it came after the receipts were read and before they are followed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist");
    // The page follows the session once it has its steps.
    const followed = Promise.withResolvers<void>();
    await page.route("**/api/agent-steps?*", async (route) => {
      await followed.promise;
      await route.continue();
    });
    const read = page.waitForResponse((response) => response.url().includes("/api/actions?"));
    await open(`/sessions/${session_id}?tab=receipts`);
    await (await read).finished();
    await world.control(session_id, "pause");
    followed.resolve();
    await receiptOf(page, "Pause").waitFor();
    await page.getByRole("button", { name: "Resume" }).waitFor();
  });

  test("is shown, although the receipts were read before it and arrive after they are followed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist");
    const [asked, followed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route("**/api/agent-steps?*", async (route) => {
      await asked.promise;
      await route.continue();
    });
    const read = Promise.withResolvers<void>();
    await page.route(
      "**/api/actions?*",
      async (route) => {
        const response = await route.fetch();
        read.resolve();
        await followed.promise;
        // The page may have asked again meanwhile, and no longer wait for this.
        await route.fulfill({ response }).catch(() => {});
      },
      { times: 1 },
    );
    await open(`/sessions/${session_id}?tab=receipts`);
    await read.promise;
    await world.control(session_id, "pause");
    asked.resolve();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    followed.resolve();
    await receiptOf(page, "Pause").waitFor();
  });

  test("tells that a request was rejected, and why", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("typist");
    await open(`/sessions/${session_id}?tab=receipts`);
    await world.control(session_id, "resume");
    await receiptOf(page, "Resume").getByText("rejected: a session that is waiting cannot be resumed").waitFor();
  });
});
