import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const NO_RETRY = { retry: { max_attempts: 1, backoff_ms: 0 } };
const item = (page: Page, session_id: string) => page.locator(`[data-testid=inbox-item][data-session="${session_id}"]`);

async function tellChat(world: World, session_id: string, guidance: string): Promise<void> {
  const sent = await world.api.post(pathOf("sessions", session_id, "interrupt"), { guidance });
  await world.consumed(read(sent, 202, SHAPES.accepted).action_id);
}

describe("what needs me", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("is nothing at first", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/inbox");
    await page.getByText("Nothing needs you").waitFor();
    assert.equal(await page.getByTestId("needs-me-count").count(), 0);
  });

  test("is a question of a tool, which is answered from there", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("chat", { agent_id: "librarian" });
    await open("/inbox");
    await tellChat(world, session_id, "write a.md: first");
    await tellChat(world, session_id, "write a.md: second");
    await item(page, session_id).getByText("a.md exists already. Shall I overwrite it?").waitFor();
    await page.getByTestId("needs-me-count").filter({ hasText: "1" }).waitFor();
    await item(page, session_id).getByRole("button", { name: "Yes" }).click();
    await item(page, session_id).waitFor({ state: "detached" });
    await tellChat(world, session_id, "read a.md");
    assert.equal((await world.api.session(session_id)).result, "second");
  });

  test("is a limit that was reached, which is extended", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const options = { max_steps: 3, step_interval_ms: 0 };
    const { session_id } = await world.api.create("joke", { options });
    await open("/inbox");
    await item(page, session_id).getByText("It reached max_steps (3) after step 2.").waitFor();
    await item(page, session_id).getByRole("spinbutton", { name: "More steps" }).fill("4");
    await item(page, session_id).getByRole("button", { name: "Extend and go on" }).click();
    await item(page, session_id).getByText("It reached max_steps (7) after step 6.").waitFor();
    await item(page, session_id).getByRole("button", { name: "Destroy…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
    await item(page, session_id).waitFor({ state: "detached" });
    assert.equal((await world.api.session(session_id)).stop_reason, "destroyed");
  });

  test("is an error, which is tried again or destroyed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const healing = { params: { to: 2, fail_at: 1, fail_times: 1 }, options: NO_RETRY };
    const hopeless = { params: { to: 2, fail_at: 1 }, options: NO_RETRY };
    const first = await world.api.create("count", healing);
    const second = await world.api.create("count", hopeless);
    await open("/inbox");
    for (const { session_id } of [first, second]) await item(page, session_id).getByText("told to fail at 1").waitFor();
    // Until the list is read again its card says what became of the session.
    const reading = Promise.withResolvers<void>();
    await page.route(/needs_person/, async (route) => {
      await reading.promise;
      await route.continue();
    });
    await item(page, first.session_id).getByRole("button", { name: "Try the step again" }).click();
    await item(page, first.session_id).getByText("It is done.").waitFor();
    assert.doesNotMatch((await item(page, first.session_id).textContent()) ?? "", /reached|Extend|Try|Destroy/);
    reading.resolve();
    await item(page, first.session_id).waitFor({ state: "detached" });
    await world.status(first.session_id, "done");
    await item(page, second.session_id).getByRole("button", { name: "Destroy…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
    await item(page, second.session_id).waitFor({ state: "detached" });
    await page.getByText("Nothing needs you").waitFor();
  });
});
