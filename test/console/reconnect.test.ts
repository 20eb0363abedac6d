import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { pathOf } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { drawn, scrollOn, scrollToPart, stepsShown, untilStep } from "./in-page.ts";

describe("a server that is killed and started again", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("is missed and found again, and no step and no message is lost or shown twice", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const conversation_id = await world.api.conversation();
    const talker = await world.api.create("echo", { conversation_id });
    const { session_id } = await world.api.create("count", { params: { to: 100_000, delay_ms: 25 } });
    const other = await page.context().newPage();
    await other.goto(`/conversations/${conversation_id}`);
    await open(`/sessions/${session_id}`);
    await untilStep(page, 5);
    await world.server.kill();
    await page.getByRole("alert").getByText("Connection lost").waitFor();
    await page.getByTestId("connection").filter({ hasText: "reconnecting" }).waitFor();
    await world.server.start();
    const { iteration } = await world.api.session(session_id);
    const path = pathOf("conversations", conversation_id, "messages");
    await world.api.post(path, { user_id: "ann", text: "said while nobody looked" });
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await untilStep(page, iteration + 20);
    await world.api.post(pathOf("sessions", session_id, "pause"));
    await page.locator("main header [data-status=paused]").waitFor();

    // The step that was running at the pause still arrives.
    let last = -1;
    await eventually("no step is under way", async () => {
      const before = last;
      last = (await world.api.session(session_id)).iteration;
      await wait(200);
      return last === before;
    });
    const list = page.getByRole("region", { name: "Steps" });
    // The last rows may still scroll the list to its end.
    await untilStep(page, last);
    await eventually("the first step is shown", async () => {
      await scrollToPart(list, 0);
      await drawn(page);
      return (await stepsShown(page)).includes(0);
    });
    const seen = new Set<number>();
    do {
      await drawn(page);
      const shown = await stepsShown(page);
      assert.equal(new Set(shown).size, shown.length, "no step is shown twice");
      for (const one of shown) seen.add(one);
    } while (await scrollOn(list));
    assert.deepEqual(
      [...seen].sort((a, b) => a - b),
      Array.from({ length: last + 1 }, (_, index) => index),
    );

    await other.locator("[data-testid=message][data-sender=agent]").getByText("said while nobody looked").waitFor();
    assert.equal(await other.getByTestId("message").count(), 2);
    assert.equal((await world.api.session(talker.session_id)).iteration, 0);
  });

  test("is missed by the list of sessions, which has everything afterwards", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    await open("/");
    await world.server.kill();
    await page.getByRole("alert").getByText("Connection lost").waitFor();
    await world.server.start();
    await world.api.create("echo", { agent_id: "born in the dark" });
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await page.getByTestId("session-row").getByText("born in the dark").waitFor();
  });
});
