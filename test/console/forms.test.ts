import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Locator } from "playwright-core";
import { TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

/** The field is marked as required in words, and says so if it is left empty. */
async function refusesEmpty(form: Locator, field: Locator, submit: string): Promise<void> {
  await field.locator("..").getByText("required", { exact: true }).waitFor();
  assert.equal(await field.getAttribute("aria-required"), "true");
  await field.fill("");
  await form.getByRole("button", { name: submit }).click();
  await field.locator("..").getByText("This is required.").waitFor();
  assert.equal(await field.getAttribute("aria-invalid"), "true");
}

describe("a form", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test(
    "for a webhook marks its name, address and events as required, and its agent as optional",
    TIMEOUT,
    async (t) => {
      const { page, open } = await visit(t);
      await open("/webhooks");
      await page.getByRole("button", { name: "Add a webhook" }).click();
      const form = page.getByRole("dialog");
      for (const name of ["Name", "Address"]) await refusesEmpty(form, form.getByLabel(name), "Add");
      const events = form.getByRole("group", { name: "When a session" });
      await events.getByText("required", { exact: true }).waitFor();
      for (const box of await events.getByRole("checkbox").all()) await box.uncheck();
      await form.getByLabel("Name").fill("ops");
      await form.getByLabel("Address").fill("https://example.com/");
      await form.getByRole("button", { name: "Add" }).click();
      await events.getByText("This is required.").waitFor();
      await form.getByLabel("Agent").locator("..").getByText("Optional.").waitFor();
      assert.deepEqual(await brokenRules(page), []);
    },
  );

  test(
    "for a conversation's participants marks names and parameters as required, its title as optional",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t, { colorScheme: "dark" });
      await open(`/conversations/${await world.api.conversation({ title: "Forms" })}`);
      const form = page.getByRole("dialog");
      await page.getByRole("button", { name: "Add a person" }).click();
      await refusesEmpty(form, form.getByLabel("Name"), "Add");
      assert.deepEqual(await brokenRules(page), []);
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Add an agent" }).click();
      await form.getByRole("combobox", { name: "Agent" }).selectOption({ value: "new:count" });
      await refusesEmpty(form, form.getByLabel("to", { exact: true }), "Add");
      await form.getByLabel("Name").locator("..").getByText("count if empty. Optional.").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "New conversation" }).click();
      await form.getByLabel("Title").locator("..").getByText("Optional.").waitFor();
      assert.deepEqual(await brokenRules(page), []);
    },
  );

  test("for a limit marks the amount as required, and refuses what is not an amount", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    const options = { max_steps: 2, step_interval_ms: 0 };
    const { session_id } = await world.api.create("joke", { options });
    await world.status(session_id, "stopped");
    await open(`/sessions/${session_id}`);
    const field = page.getByRole("spinbutton", { name: "More steps" });
    await refusesEmpty(page.locator("main"), field, "Extend and resume");
    for (const [typed, problem] of [
      ["0", "This must be more than 0."],
      ["1.5", "This must be a whole number."],
    ] as const) {
      await field.fill(typed);
      await page.getByRole("button", { name: "Extend and resume" }).click();
      await page.getByText(problem).waitFor();
    }
    assert.deepEqual(await brokenRules(page), []);
    assert.equal((await world.api.session(session_id)).options.max_steps, 2);
  });

  test("for a fork marks its step as required, and names the steps that there are", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 3 } });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    await page.getByRole("button", { name: "Fork…" }).click();
    const form = page.getByRole("dialog");
    const step = form.getByRole("spinbutton", { name: "From step" });
    await step.locator("..").getByText("required", { exact: true }).waitFor();
    await step.fill("");
    await form.getByText("This is required.").waitFor();
    await step.fill("9");
    await form.getByText("Choose a step from 0 to 3.").waitFor();
    assert.ok(await form.getByRole("button", { name: "Fork", exact: true }).isDisabled());
    assert.deepEqual(await brokenRules(page), []);
    await step.fill("1");
    await form.getByRole("button", { name: "Fork from step 1" }).click();
    await page.getByText("Forked at step 1 by operator").waitFor();
  });

  test("for a view of the list marks its name as required", TIMEOUT, async (t) => {
    const { page, open } = await visit(t);
    await open("/?moniker=joke");
    await page.getByRole("button", { name: "Save this view" }).click();
    const form = page.getByRole("dialog");
    await refusesEmpty(form, form.getByLabel("Name"), "Save");
    assert.deepEqual(await brokenRules(page), []);
  });
});
