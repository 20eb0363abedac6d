import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

/** Pages under "More", with their headings. */
const PAGES = {
  Agents: "Agents",
  Costs: "Costs",
  Monikers: "Monikers",
  Tools: "Tools",
  Webhooks: "Webhooks",
  System: "System",
  "Start an agent": "Start an agent",
};

describe("on a phone", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("More leads to every page that the bar has no room for", TIMEOUT, async (t) => {
    const { page, open } = await visit(t, { viewport: { width: 375, height: 720 }, colorScheme: "dark" });
    await open("/");
    const bar = page.getByRole("navigation", { name: "Main" });
    const more = bar.getByRole("button", { name: "More" });
    const dialog = page.getByRole("dialog", { name: "More" });
    for (const name of ["Sessions", "Needs me", "Conversations", "Search"])
      assert.ok(await bar.getByRole("link", { name }).isVisible(), name);
    for (const [name, heading] of Object.entries(PAGES)) {
      assert.ok(!(await bar.getByRole("link", { name }).isVisible()), `${name} is not in the bar`);
      await more.click();
      await dialog.getByRole("link", { name }).click();
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
      await dialog.waitFor({ state: "detached" });
    }
    await more.click();
    assert.deepEqual(await brokenRules(page), []);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 375);
    await picture(page, "more-narrow");
  });

  test("More has the palette, your name and the connection, and gives the focus back", TIMEOUT, async (t) => {
    const { page, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    await open("/");
    const more = page.getByRole("button", { name: "More" });
    await more.click();
    const dialog = page.getByRole("dialog", { name: "More" });
    await dialog.getByTestId("connection").getByText("live").waitFor();
    await dialog.getByLabel("You are").fill("ann");
    await dialog.getByLabel("You are").press("Enter");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await eventually("the focus is back", () => more.evaluate("document.activeElement?.textContent === 'More'"));
    await page.reload();
    await more.click();
    assert.equal(await dialog.getByLabel("You are").inputValue(), "ann");
    await dialog.getByRole("button", { name: "Find a session" }).click();
    await page.getByRole("combobox", { name: "Find" }).fill("webhooks");
    await page.getByRole("option", { name: "Webhooks" }).click();
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
  });
});
