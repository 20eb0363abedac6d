import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "../../src/domain/json.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const HOUR_MS = 3_600_000;

describe("a session that rests or acts by its frames", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("says when it wakes, in the list and on its page", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const until = new Date(Date.now() + 3 * HOUR_MS + 60_000).toISOString();
    const frames = [{ text: "see you later", wait: { until } }];
    const { session_id } = await world.api.create("script", { params: { frames }, options: { stop_on_done: false } });
    await world.status(session_id, "waiting");
    await open("/");
    const row = page.locator(`[data-testid=session-row][data-session="${session_id}"]`);
    await row.getByText("Wakes in 3h: see you later").waitFor();
    await row.getByRole("link").click();
    await page.getByTestId("wakes").filter({ hasText: "wakes in 3h" }).waitFor();
  });

  test("leads to its children, and they lead back to the step that started them", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const child = (to: number) => ({
      action_type: "agent_create",
      agent_id: `counter-${to}`,
      moniker: "count",
      params: { to },
    });
    const frames: JsonValue = [
      { text: "go" },
      { text: "started two", actions: [child(2), child(3)], wait: {} },
      { text: "on", wait: {} },
    ];
    const { session_id } = await world.api.create("script", { params: { frames }, options: { stop_on_done: false } });
    await world.iteration(session_id, 1);
    await world.status(`${session_id}.1.0`, "done");
    await world.status(`${session_id}.1.1`, "done");
    await open(`/sessions/${session_id}`);
    await page.getByTestId("step-row").getByText("counter-3 ended (done): 3").waitFor();
    await page.getByRole("tab", { name: "Children" }).click();
    const rows = page.getByTestId("child");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "children");
    await rows.getByRole("link", { name: "counter-3" }).click();
    await page.getByRole("heading", { name: "counter-3" }).waitFor();
    await page.getByRole("link", { name: "Started by step 1 of its parent" }).click();
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 1" }).waitFor();
    assert.match(page.url(), new RegExp(`/sessions/${session_id}\\?step=1$`));
  });

  test("holds before a breakpoint until it is resumed, in the inbox and on its page", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const frames: JsonValue = [
      { next_step: "act/1/deploy" },
      { next_step: "act/2/deploy" },
      { text: "deployed twice" },
    ];
    const options = { hold_before: ["act/*/deploy"] };
    const { session_id } = await world.api.create("script", { agent_id: "deployer", params: { frames }, options });
    await open("/inbox");
    const item = page.locator(`[data-testid=inbox-item][data-session="${session_id}"]`);
    await item.getByText("Held at a breakpoint before step act/1/deploy.").waitFor();
    await item.getByRole("button", { name: "Resume" }).click();
    await item.getByText("Held at a breakpoint before step act/2/deploy.").waitFor();
    assert.equal((await world.api.session(session_id)).iteration, 1);
    await open(`/sessions/${session_id}`);
    const banner = page.getByTestId("pause-banner");
    await banner.getByText("act/2/deploy").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "breakpoint");
    assert.equal(await page.getByRole("button", { name: "Resume" }).count(), 1);
    await banner.getByRole("button", { name: "Resume" }).click();
    await page.locator("main header [data-status=done]").waitFor();
    await banner.waitFor({ state: "detached" });
  });

  test(
    "is forked with another state, parameters, options and moniker, and what they lack is said",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const { session_id } = await world.api.create("count", { params: { to: 4 } });
      await world.status(session_id, "done");
      await open(`/sessions/${session_id}`);
      await page.getByRole("button", { name: "Fork…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("From step").fill("2");
      await dialog.getByText("Change its model, state, parameters or options").click();
      const state = dialog.getByLabel("State");
      await eventually("the state after step 2 is shown", async () => (await state.inputValue()) === '{\n  "n": 2\n}');
      await state.fill("[1]");
      await dialog.getByText("This is not a JSON object.").waitFor();
      assert.ok(await dialog.getByRole("button", { name: "Fork from step 2" }).isDisabled());
      await state.fill('{"n": 6}');
      await dialog.getByLabel("Parameters").fill('{"to": "far"}');
      await dialog.getByLabel("Options").fill('{"max_steps": 0}');
      await dialog.getByRole("button", { name: "Fork from step 2" }).click();
      await dialog.locator("[aria-invalid=true]").first().waitFor();
      assert.deepEqual(await brokenRules(page), []);
      await dialog.getByLabel("Options").fill('{"max_steps": 100}');
      await dialog.getByLabel("Parameters").fill('{"to": 8, "fail_at": "x"}');
      await dialog.getByRole("button", { name: "Fork from step 2" }).click();
      await dialog.getByText(/^fail_at: /).waitFor();
      await picture(page, "fork-changes");
      await dialog.getByLabel("Parameters").fill('{"to": 8}');
      await dialog.getByRole("button", { name: "Fork from step 2" }).click();
      await page.getByRole("link", { name: "Forked at step 2" }).waitFor();
      const fork_id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      const fork = await world.status(fork_id, "done");
      assert.deepEqual([fork.context, fork.params["to"], fork.options.max_steps], [{ n: 8 }, 8, 100]);
      assert.deepEqual(
        (await world.api.steps(fork_id)).map(({ text }) => text),
        ["0", "1", "2", "7", "8"],
      );

      await page.getByRole("button", { name: "Fork…" }).click();
      await dialog.getByText("Change its model, state, parameters or options").click();
      await dialog.getByLabel("Moniker").selectOption("echo");
      await dialog.getByLabel("Parameters").fill("{}");
      await dialog.getByRole("button", { name: "Fork from step 4" }).click();
      await page.getByRole("link", { name: "Forked at step 4" }).waitFor();
      const echo_id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      assert.deepEqual((await world.api.session(echo_id)).moniker, "echo");
    },
  );
});

describe("a server that holds its sessions at the start", WITH_BROWSER, () => {
  const visit = sharedConsole({ EVERSTEP_START_HELD: "1" });

  test("says so on every page, and lets them go on when it is told to", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 100_000, delay_ms: 5 } });
    await world.iteration(session_id, 3);
    await world.server.kill();
    await world.server.start();
    const held = await world.api.session(session_id);
    await open("/agents");
    const banner = page.getByTestId("hold-banner");
    await banner.waitFor();
    await page.getByRole("heading", { name: "Agents" }).waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "start-held");
    const later = await world.api.create("count", { params: { to: 3, delay_ms: 5 } });
    await eventually("a new one runs", async () => (await world.api.session(later.session_id)).status === "done");
    assert.equal((await world.api.session(session_id)).iteration, held.iteration);
    await banner.getByRole("button", { name: "Release all" }).click();
    await page.getByText("1 session released.").waitFor();
    await banner.waitFor({ state: "detached" });
    await eventually("it goes on", async () => (await world.api.session(session_id)).iteration > held.iteration);
  });
});
