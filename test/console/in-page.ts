import type { Locator, Page } from "playwright-core";
import { eventually } from "../server/server-fixture.ts";

type Element = { scrollTop: number; scrollHeight: number; clientHeight: number };

/** Scrolls a list to a fraction of its whole height, 0 to 1. */
export const scrollToPart = (list: Locator, part: number): Promise<void> =>
  list.evaluate((element: unknown, share) => {
    const box = element as Element;
    box.scrollTop = box.scrollHeight * share;
  }, part);

/** Scrolls a list by most of its height; false at its end. */
export const scrollOn = (list: Locator): Promise<boolean> =>
  list.evaluate((element: unknown) => {
    const box = element as Element;
    const before = box.scrollTop;
    box.scrollTop += box.clientHeight * 0.8;
    return box.scrollTop > before;
  });

/** Resolves when what was scrolled into view is drawn. */
export const drawn = (page: Page): Promise<unknown> =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");

const LAST_STEP = "Number([...document.querySelectorAll('[data-testid=step-row]')].at(-1)?.dataset.iteration ?? -1)";

/** Waits until the timeline shows this step or a later one at its end. */
export const untilStep = (page: Page, iteration: number): Promise<boolean> =>
  eventually(`step ${iteration} is shown`, async () => (await lastStep(page)) >= iteration);

export const stepsShown = (page: Page): Promise<number[]> =>
  page.evaluate("[...document.querySelectorAll('[data-testid=step-row]')].map((row) => Number(row.dataset.iteration))");

export const lastStep = (page: Page): Promise<number> => page.evaluate(LAST_STEP);
