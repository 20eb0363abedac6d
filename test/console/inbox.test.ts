import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

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
    await item(page, session_id).getByText("a.md already exists. Shall I overwrite it?").waitFor();
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
    await item(page, session_id).getByText("Reached max_steps (3) after step 2.").waitFor();
    await item(page, session_id).getByRole("spinbutton", { name: "More steps" }).fill("4");
    await item(page, session_id).getByRole("button", { name: "Extend and resume" }).click();
    await item(page, session_id).getByText("Reached max_steps (7) after step 6.").waitFor();
    await item(page, session_id).getByRole("button", { name: "Destroy…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
    await item(page, session_id).waitFor({ state: "detached" });
    assert.equal((await world.api.session(session_id)).stop_reason, "destroyed");
  });

  test("has the same moves for a limit here and on the session's page", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const options = { max_steps: 2, step_interval_ms: 0 };
    const { session_id } = await world.api.create("joke", { agent_id: "limited", options });
    await world.status(session_id, "stopped");
    for (const [path, place] of [
      ["/inbox", item(page, session_id)],
      [`/sessions/${session_id}`, page.locator("main")],
      [`/sessions/${session_id}?step=1`, page.locator("main")],
    ] as const) {
      await open(path);
      await place.getByText("Reached max_steps (2) after step 1.").waitFor();
      for (const name of ["Extend and resume", "Fork…", "Destroy…"])
        assert.ok(await place.getByRole("button", { name, exact: true }).isEnabled(), `${name} at ${path}`);
      assert.equal(await place.getByRole("button", { name: /Extend/ }).count(), 1);
      assert.deepEqual(await brokenRules(page), []);
    }
    await page.getByText("Extend the limit to guide it again").waitFor();
    await picture(page, "limit");
    await page.getByRole("spinbutton", { name: "More steps" }).fill("3");
    await page.getByRole("button", { name: "Extend and resume" }).click();
    await page.getByText("Reached max_steps (5) after step 4.").waitFor();
    await open("/inbox");
    await item(page, session_id).getByRole("button", { name: "Fork…" }).click();
    await page.getByRole("button", { name: "Fork from step 4" }).click();
    await page.getByText("Forked at step 4 by operator").waitFor();
    for (const id of [session_id, new URL(page.url()).pathname.split("/").at(-1) ?? ""])
      await world.control(id, "destroy");
  });

  test("is an error, which is tried again or destroyed", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const healing = { params: { to: 2, fail_at: 1, fail_times: 1 }, options: NO_RETRY };
    const hopeless = { params: { to: 2, fail_at: 1 }, options: NO_RETRY };
    const first = await world.api.create("count", healing);
    const second = await world.api.create("count", hopeless);
    await open("/inbox");
    for (const { session_id } of [first, second]) await item(page, session_id).getByText("told to fail at 1").waitFor();
    // Until the list is read again, its card shows the session's new status.
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
