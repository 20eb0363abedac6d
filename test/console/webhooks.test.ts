import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pathOf } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { Receiver, verified } from "../webhooks/receiver.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

describe("the page of webhooks", WITH_BROWSER, () => {
  const visit = sharedConsole({ EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1" });

  test("adds one, shows its secret once, shows its deliveries, and sends one again", TIMEOUT, async (t) => {
    await using receiver = await Receiver.start();
    receiver.respond = (response) => void response.writeHead(410).end();
    const { page, world, open } = await visit(t);
    await open("/");
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByText("No webhooks yet").waitFor();
    await page.getByRole("button", { name: "Add a webhook" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("ops");
    await form.getByLabel("Address").fill("http://10.0.0.1/");
    await form.getByRole("button", { name: "Add" }).click();
    await form.getByText("webhook_address_refused").waitFor();
    await form.getByLabel("Address").fill(receiver.url);
    await form.getByLabel("asks a question").uncheck();
    assert.deepEqual(await brokenRules(page), []);
    await form.getByRole("button", { name: "Add" }).click();
    const secret = (await page.getByTestId("secret").textContent()) ?? "";
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("No deliveries yet.").waitFor();
    await world.api.create("script", {
      agent_id: "reporter",
      params: { frames: [{ ask: { text: "?" }, wait: { until: "2020-01-01T00:00:00Z" } }, {}] },
    });
    const row = page.getByTestId("delivery");
    await row.getByText("given up").waitFor();
    await row.filter({ hasText: /session\.endedreporter .*the receiver answered 410/ }).waitFor();
    const [first] = receiver.received;
    assert.ok(first && verified(secret, first));
    receiver.respond = (response) => void response.writeHead(204).end();
    await picture(page, "webhooks");
    assert.deepEqual(await brokenRules(page), []);
    await row.getByRole("button", { name: "Send again" }).click();
    await row.getByText("delivered").waitFor();
    assert.equal(receiver.received.at(-1)?.id, first.id);
    await page.getByRole("button", { name: "New secret for ops" }).click();
    await page
      .getByTestId("secret")
      .getByText(/^whsec_/)
      .waitFor();
    assert.notEqual(await page.getByTestId("secret").textContent(), secret);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Remove ops" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("No webhooks yet").waitFor();
    assert.equal((await world.api.get(pathOf("webhooks", "ops"))).status, 404);
  });
});
