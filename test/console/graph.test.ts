import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { JsonValue } from "../../src/domain/json.ts";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

/** The tokens of an agent's steps, in order. */
const WAY = [
  "plan",
  ...[1, 2, 3].flatMap((round) => [`think/${round}`, `act/${round}.1/files/read`]),
  "think/4",
  "act/4.1/web/search",
  "think/5",
  "answer",
  "rest",
];
/** Frames that follow these tokens, wait before the end, and continue after guidance. */
const FRAMES: JsonValue = [
  ...WAY.map((next_step, at) => ({ text: `to ${next_step}`, next_step, ...(at === WAY.length - 1 && { wait: {} }) })),
  { text: "rested" },
];

const node = (page: Page, name: string) => page.getByTestId("step-graph").locator(`[data-node="${name}"]`);
/** Whether the whole node is within the part of the graph that is seen. */
const isInView = (page: Page, name: string): Promise<boolean> =>
  page.evaluate(`(() => {
    const graph = document.querySelector("[data-testid=step-graph]");
    const [seen, box] = [graph, graph.querySelector('[data-node="${name}"]')].map((one) => one.getBoundingClientRect());
    return box.left >= seen.left && box.right <= seen.right;
  })()`);
const branch = (page: Page, session_id: string) =>
  page.locator(`[data-testid=branch][data-session="${session_id}"] > div`);

async function fork(world: World, session_id: string, user_id: string, iteration: number): Promise<string> {
  const answer = await world.api.post(pathOf("sessions", session_id, "fork"), { iteration, user_id });
  return read(answer, 202, SHAPES.accepted).session_id;
}

describe("the picture of a session", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("shows its kinds of steps, how often each followed the other, and where it is", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 1440, height: 900 } });
    const { session_id } = await world.api.create("script", { agent_id: "walker", params: { frames: FRAMES } });
    await world.status(session_id, "waiting");
    await open(`/sessions/${session_id}?tab=graph`);
    await node(page, "think").getByText("5×").waitFor();
    await node(page, "act/files/read").getByText("3×").waitFor();
    await node(page, "rest").getByText("next", { exact: true }).waitFor();
    assert.deepEqual(
      await page
        .locator("[data-current=true]")
        .evaluateAll((nodes) => nodes.map((one) => String(one.getAttribute("data-node")))),
      ["rest"],
    );
    await page.getByText("transitions, as a table").click();
    const rows = await page.getByRole("row").allTextContents();
    for (const row of ["thinkact/files/read3", "act/files/readthink3", "planthink1", "thinkanswer1"])
      assert.ok(rows.includes(row), `${row} is among ${rows.join(" ")}`);
    assert.deepEqual(await brokenRules(page), []);
    await page.getByText("transitions, as a table").click();
    await picture(page, "graph-wide");
    await world.api.post(pathOf("sessions", session_id, "interrupt"), { guidance: "go" });
    await node(page, "rest").getByText("1×").waitFor();
    await node(page, "answer").press("Enter");
    await page
      .getByTestId("step-detail")
      .getByRole("heading", { name: `Step ${WAY.length - 1}` })
      .waitFor();
  });

  test("keeps counts, boxes and arrows to itself apart, however many there are", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 1440, height: 900 } });
    const tools = ["files/list", "files/read", "files/read", "own/book", "own/book", "web/search", "files/write"];
    const tokens = [
      "plan",
      ...[1, 2, 3].flatMap((round) => [
        `think/${round}`,
        ...tools.map((tool, at) => `act/${round}.${at}/${tool}`),
        ...tools.toReversed().flatMap((tool, at) => [`think/${round}.${at}`, `act/${round}.${at}/${tool}`]),
      ]),
      "answer",
    ];
    const frames: JsonValue = [
      ...tokens.map((next_step, at) => ({ next_step, ...(at === tokens.length - 1 && { wait: {} }) })),
      { text: "end" },
    ];
    const { session_id } = await world.api.create("script", { agent_id: "weaver", params: { frames } });
    await world.status(session_id, "waiting");
    await open(`/sessions/${session_id}?tab=graph`);
    await node(page, "act/own/book").getByText("12×").waitFor();
    const touching = (await page.evaluate(`(() => {
      const places = [...document.querySelectorAll("[data-testid=step-graph] :is(svg > text, [data-node] rect)")]
        .filter((element) => element.tagName === "rect" || element.textContent !== "")
        .map((element) => ({ words: element.parentElement.dataset.node ?? element.textContent, box: element.getBoundingClientRect() }));
      const isApart = (one, other) => one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
      return places.flatMap(({ words, box }, at) =>
        places.slice(at + 1).filter((other) => !isApart(box, other.box)).map((other) => words + " and " + other.words));
    })()`)) as string[];
    assert.deepEqual(touching, []);
    assert.ok(await isInView(page, "answer"), "the current node is in view");
    await picture(page, "graph-crowded");
  });

  test("has the tree of children and forks, each with its status and who made it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    const child = { action_type: "agent_create", agent_id: "child", moniker: "count", params: { to: 2 } };
    const frames: JsonValue = [
      { text: "go" },
      { text: "started one", actions: [child], wait: {} },
      { text: "on", wait: {} },
    ];
    const options = { stop_on_done: false };
    const { session_id } = await world.api.create("script", { agent_id: "parent", params: { frames }, options });
    const child_id = `${session_id}.1.0`;
    await world.iteration(session_id, 1);
    await world.status(child_id, "done");
    const first = await fork(world, session_id, "ann", 0);
    const second = await fork(world, first, "bob", 0);
    await world.control(second, "destroy");
    await world.status(second, "stopped");
    await open(`/sessions/${first}?tab=graph`);
    await branch(page, session_id).getByText("parent").waitFor();
    await branch(page, child_id)
      .getByText(/started by step 1 · 3 steps/)
      .waitFor();
    await branch(page, child_id).locator("[data-status=done]").waitFor();
    await branch(page, first)
      .getByText(/fork at step 0 by ann/)
      .waitFor();
    await branch(page, second)
      .getByText(/fork at step 0 by bob/)
      .waitFor();
    await branch(page, second).locator("[data-status=stopped]").waitFor();
    await page.getByText("Forked at step 0 by ann").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await branch(page, second).scrollIntoViewIfNeeded();
    await picture(page, "tree-narrow");
    // A fork created while the tree is open appears in it.
    const third = await fork(world, first, "cleo", 0);
    await branch(page, third)
      .getByText(/by cleo/)
      .waitFor();
    await branch(page, second).getByRole("link", { name: "Compare with" }).click();
    await page.getByText("They are identical up to step 0.").waitFor();
  });

  test(
    "is compared with any other session, which is looked for by words, one above the other on a telephone",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
      const joke = (subject: string) =>
        world.api.create("joke", {
          agent_id: `on ${subject}`,
          params: { subject },
          options: { max_steps: 3, step_interval_ms: 0 },
        });
      const [tea, rain] = [await joke("tea"), await joke("rain")];
      for (const { session_id } of [tea, rain]) await world.status(session_id, "stopped");
      await open(`/sessions/${tea.session_id}`);
      await page.getByRole("link", { name: "Compare…" }).click();
      await page.getByText("Choose the session to compare on tea with.").waitFor();
      assert.equal(await page.locator(`[data-session="${tea.session_id}"]`).count(), 0, "not with itself");
      await page.getByLabel("The other session", { exact: true }).and(page.locator("input")).fill("on rain");
      assert.deepEqual(await brokenRules(page), []);
      await eventually("only one fits", async () => (await page.locator("main li [data-session]").count()) === 1);
      await page.locator(`[data-session="${rain.session_id}"]`).click();
      await page.getByText("They share no history.").waitFor();
      await page.locator("[data-differs=true] mark").filter({ hasText: "rain" }).first().waitFor();
      await page.getByText("They were started with different values").click();
      await page.getByTestId("changes").getByText("params.subject").waitFor();
      assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 375);
      assert.deepEqual(await brokenRules(page), []);
      await picture(page, "compare-any-narrow");
      const [left, right] = await Promise.all(
        [0, 1].map((at) => page.locator("[data-differs=true]").nth(at).boundingBox()),
      );
      assert.ok(left && right && right.y >= left.y + left.height - 1 && right.x === left.x, "one above the other");
      await page.getByRole("button", { name: "Swap" }).click();
      await page.waitForURL(`**/compare/${rain.session_id}/${tea.session_id}`);
      // Selecting two in the list leads here, too.
      await open("/?q=on");
      for (const { session_id } of [tea, rain])
        await page.locator(`[data-session="${session_id}"]`).getByRole("checkbox").check();
      await page.getByRole("button", { name: "Compare" }).click();
      await page.waitForURL(`**/compare/${tea.session_id}/${rain.session_id}`);
    },
  );
});
