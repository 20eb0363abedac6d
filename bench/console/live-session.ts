import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Browser } from "playwright-core";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { openConsole, until } from "./open-console.ts";

/** Duration of a step in milliseconds; with its commit this makes slightly more than a hundred steps a second. */
const STEP_MS = 7;

/**
 * A busy machine runs fewer steps, so the page's fixed costs weigh more and the figure for 100 steps a second is rather too
 * high. Measured after a while, when the page already has thousands of steps.
 */
export async function measureLiveSession({ folder, quick }: BenchContext): Promise<Figure[]> {
  const [before, seconds] = quick ? [500, 5] : [3000, 20];
  await using opened = await openConsole(join(folder, "live"));
  const { page, browser, session, create } = opened;
  const session_id = await create({ to: 1_000_000, delay_ms: STEP_MS });
  await page.goto(`/sessions/${session_id}`);
  await page.locator("[data-testid=step-row]").last().waitFor();
  await until("it ran for a while", 120_000, async () => (await session(session_id)).iteration > before);
  const first = { cpu: await pageProcessor(browser), at: Date.now(), ...(await session(session_id)) };
  await wait(seconds * 1000);
  const last = { cpu: await pageProcessor(browser), at: Date.now(), ...(await session(session_id)) };
  const passed = (last.at - first.at) / 1000;
  const rate = (last.iteration - first.iteration) / passed;
  const processor = ((last.cpu - first.cpu) / passed) * 100;
  return [
    { figure: "steps of the session", measured: rate, unit: "1/s", bar: null },
    { figure: "processor of the page", measured: processor, unit: "% of a core", bar: null },
    { figure: "the same for 100 steps/s", measured: (processor / rate) * 100, unit: "% of a core", bar: below(20) },
  ];
}

/** CPU time in seconds of the processes that render pages. */
async function pageProcessor(browser: Browser): Promise<number> {
  const devtools = await browser.newBrowserCDPSession();
  const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
  await devtools.detach();
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}
