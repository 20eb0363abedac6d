import { join } from "node:path";
import type { Page } from "playwright-core";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { openConsole, until } from "./open-console.ts";

const WITHIN_MS = 120_000;
const TIMES = 5;

/** Timed from the navigation, in a browser that has cached the console's files, as it would in daily use. */
export async function measurePicture({ folder, quick }: BenchContext): Promise<Figure[]> {
  const steps = quick ? 2000 : 10_000;
  await using opened = await openConsole(join(folder, "picture"));
  const { page, session, create } = opened;
  const session_id = await create({ to: steps - 1 });
  await until("all steps are done", WITHIN_MS, async () => (await session(session_id)).status === "done");
  const opens: number[] = [];
  const whole: number[] = [];
  const draws: number[] = [];
  await page.goto("/");
  for (let time = 0; time < TIMES; time++) {
    await page.goto("about:blank");
    await page.goto(`/sessions/${session_id}`, { waitUntil: "commit" });
    await page.locator("[data-testid=step-row]").last().waitFor();
    await page.getByTestId("current-step").waitFor();
    opens.push(await sinceNavigation(page));
    await page
      .getByTestId("picture-summary")
      .filter({ hasText: new RegExp(`^${steps.toLocaleString("en-US")} steps(?!.*loading)`) })
      .waitFor();
    whole.push(await sinceNavigation(page));
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    draws.push(...(await drawTimes(page, steps)));
  }
  const frames = await framesWhileMoving(page);
  return [
    {
      figure: "the page shows its steps and what happens now, p50",
      measured: summarize(opens).p50,
      unit: "ms",
      bar: below(1000),
    },
    { figure: "the picture has all steps, p50", measured: summarize(whole).p50, unit: "ms", bar: null },
    { figure: "drawing all steps, longest", measured: Math.max(...draws), unit: "ms", bar: below(300) },
    {
      figure: "moving and zooming the picture, longest frame",
      measured: Math.max(...frames),
      unit: "ms",
      bar: atMost(50),
    },
    { figure: "moving and zooming the picture, p50 of frames", measured: summarize(frames).p50, unit: "ms", bar: null },
  ];
}

const sinceNavigation = (page: Page): Promise<number> => page.evaluate("performance.now()");

/** How long each drawing of the canvas with all steps took. */
const drawTimes = (page: Page, steps: number): Promise<number[]> =>
  page.evaluate(
    `performance.getEntriesByName("everstep.picture").filter(({ detail }) => detail >= ${steps}).map(({ duration }) => duration)`,
  );

/** The times between frames while a person zooms in, drags back and forth, and zooms out. */
async function framesWhileMoving(page: Page): Promise<number[]> {
  const box = await page.getByTestId("picture").locator("canvas").boundingBox();
  if (!box) throw new Error("the picture is not drawn");
  const [x, y] = [box.x + box.width / 2, box.y + 50];
  await page.mouse.move(x, y);
  await page.evaluate(`
    globalThis.frames_ms = [];
    (() => {
      let last = performance.now();
      const next = (now) => { frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
      requestAnimationFrame(next);
    })()`);
  for (let turn = 0; turn < 8; turn++) await page.mouse.wheel(0, -120);
  await page.mouse.down();
  for (const way of [-1, 1, -1]) await page.mouse.move(x + way * 300, y, { steps: 30 });
  await page.mouse.up();
  for (let turn = 0; turn < 4; turn++) await page.mouse.wheel(0, 120);
  return page.evaluate("frames_ms.slice(1)");
}
