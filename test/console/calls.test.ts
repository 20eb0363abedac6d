import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

describe("the calls of a step", WITH_BROWSER, () => {
  const visit = sharedConsole();

  for (const colorScheme of ["light", "dark"] as const)
    test(
      `show prompt, reply, arguments, outputs and errors with what they cost, ${colorScheme}`,
      TIMEOUT,
      async (t) => {
        const { page, world, open } = await visit(t, { colorScheme, viewport: { width: 1440, height: 900 } });
        const { session_id } = await world.api.create("caller");
        await world.status(session_id, "done");
        await open(`/sessions/${session_id}?step=0`);
        const calls = page.getByTestId("call");
        const model = calls.nth(0);
        for (const words of ["acme/large-2", "1,204 in (800 cached)", "96 out", "$0.0042", "812 ms"])
          await model.getByText(words, { exact: true }).waitFor();
        assert.equal(
          await model.getByTestId("call-message").count(),
          0,
          "of many calls only those that failed are open",
        );
        await model.getByRole("button", { name: "acme/large-2" }).click();
        const prompt = model.getByRole("region", { name: "Prompt", exact: true });
        await prompt.getByText("You write TypeScript.").waitFor();
        await prompt.getByText("4 earlier messages were sent too").waitFor();
        await prompt.locator("[data-token=keyword]", { hasText: "return" }).waitFor();
        await prompt.locator("[data-token=comment]", { hasText: "// says hello" }).waitFor();
        await model.getByRole("region", { name: "Reply", exact: true }).getByText("I read the file first.").waitFor();
        const failed = calls.nth(2);
        await failed.getByTestId("call-error").getByText("b.ts is outside of the folder").waitFor();
        assert.deepEqual(await brokenRules(page), []);
        await picture(page, `calls-${colorScheme}`);
      },
    );

  test("unfold place by place, are searched and copied", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const { session_id } = await world.api.create("caller");
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}?step=0`);
    const read = page.getByTestId("call").nth(1);
    await read.getByRole("button", { name: "files/read" }).click();
    const output = read.getByRole("group", { name: "Output" });
    await output.getByRole("button", { name: '"lines": [' }).waitFor();
    assert.equal(await output.getByText("needle").count(), 0, "what is deep is folded");
    await output.getByRole("searchbox", { name: "Search in Output" }).fill("NEEDLE");
    await output.getByText("1 match", { exact: true }).waitFor();
    await output.locator("mark", { hasText: "needle" }).waitFor();
    assert.equal(await output.getByText("row 3").count(), 0, "what has no match stays folded");
    await output.getByRole("searchbox").fill("");
    await output.getByRole("button", { name: '"lines": [' }).click();
    assert.equal(
      await output.getByRole("button", { name: '"lines": [ 12 items' }).getAttribute("aria-expanded"),
      "false",
    );
    await output.getByRole("button", { name: "Copy Output" }).click();
    await page.getByText("Copied Output").waitFor();
    const copied = JSON.parse(String(await page.evaluate("navigator.clipboard.readText()"))) as { lines: unknown[] };
    assert.equal(copied.lines.length, 12);
  });
});
