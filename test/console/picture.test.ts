import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { pathOf } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { drawn } from "./in-page.ts";

const canvas = (page: Page): Locator => page.getByTestId("picture").locator("canvas");
const summary = (page: Page): Locator => page.getByTestId("picture-summary");
const inView = async (page: Page): Promise<{ from: number; to: number }> => ({
  from: Number(await canvas(page).getAttribute("data-from")),
  to: Number(await canvas(page).getAttribute("data-to")),
});
const lengthInView = async (page: Page): Promise<number> => {
  const { from, to } = await inView(page);
  return to - from;
};

/** Where the picture shows this time. */
async function placeOf(page: Page, time: string): Promise<number> {
  const { from, to } = await inView(page);
  const { width } = (await canvas(page).boundingBox()) ?? assert.fail();
  return ((Date.parse(time) - from) / (to - from)) * width;
}

/** More than are read at first. */
const GUIDED = 260;

describe("the picture of an eventful session", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test(
    "tells of retries, pauses, guidance and crashes of processes that are gone, and leads to each",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const { session_id } = await eventful(world);
      await open(`/sessions/${session_id}`);
      for (const words of [/^\d+ steps in \d+ s/, "3 steps retried", "1 pause", "1 guidance message", "2 crashes"])
        await summary(page).filter({ hasText: words }).waitFor();
      await summary(page).click();
      const events = page.getByRole("list", { name: "What happened" });
      await events
        .getByText(/^attempt 2, resumed after \d+ m?s$/)
        .first()
        .waitFor();
      await events.getByText(/^paused by ann for \d+ s$/).waitFor();
      await events.getByText("guidance by ann: hurry").waitFor();
      // Also for a process that has ended: the step itself records the crash.
      const crashes = events.getByText(/^process crashed, resumed after \d+ m?s$/);
      await eventually("both crashes are told", async () => (await crashes.count()) === 2);
      assert.deepEqual(await brokenRules(page), []);
      await picture(page, "picture-events");
      await events
        .getByText(/^attempt 2, resumed/)
        .first()
        .click();
      await page.getByTestId("step-detail").getByRole("heading", { name: "Step 2" }).waitFor();
    },
  );
});

describe("the picture of a session's timeline", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("is zoomed by wheel, buttons and keys, moved by dragging, and a click chooses a step", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 19, delay_ms: 40 } });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    await summary(page).filter({ hasText: "20 steps" }).waitFor();
    await drawn(page);
    const whole = await lengthInView(page);
    const steps = await world.api.steps(session_id);
    const at = (iteration: number): Promise<number> => placeOf(page, steps[iteration]?.created_at ?? assert.fail());
    const hint = page.getByTestId("picture-hint").getByText(/^Step \d+ \(\d+\), [\d.]+ m?s$/);
    await eventually("the step under the pointer is told", async () => {
      await canvas(page).hover({ position: { x: await at(10), y: 50 } });
      await drawn(page);
      return hint.isVisible();
    });
    const box = (await canvas(page).boundingBox()) ?? assert.fail();
    const x = box.x + (await at(10));
    await page.mouse.wheel(0, -600);
    await eventually("the wheel zooms in", async () => (await lengthInView(page)) < whole * 0.6);
    const wheeled = await inView(page);
    await page.mouse.down();
    await page.mouse.move(x - 100, box.y + 50, { steps: 5 });
    await page.mouse.up();
    await eventually("dragging moves it", async () => (await inView(page)).from > wheeled.from);
    assert.doesNotMatch(page.url(), /step=/, "dragging chooses nothing");
    await page.getByRole("button", { name: "Show all" }).click();
    await eventually("all is in view", async () => (await lengthInView(page)) === whole);
    await page.getByRole("button", { name: "Zoom in" }).click();
    await eventually("the button zooms in", async () => (await lengthInView(page)) < whole * 0.7);
    await canvas(page).focus();
    await page.keyboard.press("0");
    await page.keyboard.press("+");
    await page.keyboard.press("+");
    await eventually("keys zoom in", async () => (await lengthInView(page)) < whole * 0.5);
    const before = await inView(page);
    await page.keyboard.press("ArrowRight");
    await eventually("keys move it", async () => (await inView(page)).from > before.from);
    await page.keyboard.press("0");
    await drawn(page);
    await canvas(page).click({ position: { x: await at(19), y: 50 } });
    await page.waitForURL(/step=19/);
    await page.getByTestId("step-detail").getByRole("heading", { name: "Step 19" }).waitFor();
  });

  test("brings a step that is far away into the list, where the keys go on from it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 799 } });
    await world.ended(session_id);
    await open(`/sessions/${session_id}`);
    const rows = page.getByTestId("step-row");
    await summary(page).filter({ hasText: "800 steps" }).waitFor();
    await rows.filter({ hasText: "799" }).first().waitFor();
    await drawn(page);
    const [first] = await world.api.steps(session_id);
    const x = await placeOf(page, first?.created_at ?? "");
    await canvas(page).click({ position: { x, y: 50 } });
    await page.waitForURL(/step=\d+/);
    const chosen = new URL(page.url()).searchParams.get("step");
    await page.locator(`[data-testid=step-row][data-iteration="${chosen}"][aria-pressed=true]`).waitFor();
    await page.keyboard.press("j");
    await page.locator(`[data-testid=step-row][data-iteration="${Number(chosen) + 1}"][aria-pressed=true]`).waitFor();
  });

  test("grows with a session that runs", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("count", { params: { to: 100_000, delay_ms: 60 } });
    await world.iteration(session_id, 2);
    await open(`/sessions/${session_id}`);
    const steps = async (): Promise<number> => Number.parseInt((await summary(page).textContent()) ?? "0", 10);
    await eventually("some are drawn", async () => (await steps()) >= 2);
    const first = await steps();
    await eventually("more are drawn", async () => (await steps()) > first + 5);
    await world.control(session_id, "destroy");
  });

  test("has all requests of a session that was guided more often than one page of them holds", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const { session_id } = await world.api.create("echo", { agent_id: "listener" });
    for (let at = 0; at < GUIDED; at += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          world.api.post(pathOf("sessions", session_id, "interrupt"), {
            guidance: `word ${at + index}`,
            user_id: "ann",
          }),
        ),
      );
    await eventually(
      "all are consumed",
      async () => (await world.api.session(session_id)).pending_guidance.length === 0,
    );
    await open(`/sessions/${session_id}`);
    await summary(page)
      .filter({ hasText: `${GUIDED} guidance messages` })
      .waitFor();
    await page.getByRole("tab", { name: "Receipts" }).click();
    const receipts = page.getByTestId("receipt");
    await page.getByRole("button", { name: `Show more of ${GUIDED + 1} requests` }).click();
    await eventually("another page", async () => (await receipts.count()) === 200);
    // The sender of the first step's guidance is known, although it is not among the newest requests.
    await open(`/sessions/${session_id}?step=0`);
    await page.getByTestId("consumed").first().getByText("by ann").waitFor();
  });

  test("is a tab of its own on a telephone", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    const { session_id } = await world.api.create("count", { params: { to: 30, delay_ms: 10 } });
    await world.status(session_id, "done");
    await open(`/sessions/${session_id}`);
    await page.getByRole("tab", { name: "Picture" }).click();
    await summary(page).filter({ hasText: "31 steps" }).waitFor();
    await drawn(page);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "picture-narrow");
  });
});

/** A session with a failed attempt, a pause and guidance, whose server was killed twice. */
async function eventful(world: World): Promise<{ session_id: string }> {
  const { api } = world;
  const params = { to: 100_000, delay_ms: 400, fail_at: 2, fail_times: 1 };
  const options = { retry: { max_attempts: 3, backoff_ms: 700 } };
  const { session_id } = await api.create("count", { agent_id: "importer", params, options });
  await world.iteration(session_id, 3);
  const metadata = { user_id: "ann" };
  const submit = (action_type: string, payload: Record<string, string> = {}) =>
    api.post("/api/actions", { action_type, session_id, payload, metadata });
  await submit("agent_pause");
  await world.session(session_id, ({ status, step_started_at }) => status === "paused" && step_started_at === null);
  await submit("agent_interrupt", { guidance: "hurry" });
  await new Promise((done) => setTimeout(done, 1200));
  await submit("agent_resume");
  const { iteration } = await world.session(session_id, ({ status }) => status === "running");
  await world.iteration(session_id, iteration + 2);
  for (const _ of ["a crash", "another one"]) {
    const before = (await api.session(session_id)).iteration;
    await world.server.kill();
    await world.server.start();
    // The world's own socket was lost with the server.
    await eventually("it goes on", async () => (await api.session(session_id)).iteration > before + 2);
  }
  return { session_id };
}
