import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { REPOSITORY } from "../repository-files.ts";
import type { Environment } from "../server/spawn-everstep.ts";
import { sharedWorld, type World } from "../server/world.ts";
import { launchChromium } from "./chromium.ts";

export const BUILT = join(REPOSITORY, "console/dist");
const MONIKERS = fileURLToPath(new URL("monikers", import.meta.url));
const ARTIFACTS = fileURLToPath(new URL("artifacts", import.meta.url));
const PICTURES = join(REPOSITORY, "docs/pictures");
/** What a page may take, in milliseconds, before it is taken to be broken. */
const PATIENCE_MS = 60_000;

assert.ok(existsSync(join(BUILT, "index.html")), "the console is not built: npm run build");

const chromium = await launchChromium().catch((error: unknown) => String(error));
const missing =
  typeof chromium === "string"
    ? `Chromium does not run here (${chromium.split("\n")[0]}): set CHROMIUM to one that does, or install the libraries it names`
    : false;

/** For `describe`: without a browser its tests are skipped, unless all are wanted. */
export const WITH_BROWSER = { skip: process.env["EVERSTEP_TEST_ALL"] === "1" ? false : missing };

// One browser for the tests of a file.
after(async () => {
  if (typeof chromium !== "string") await chromium.close();
});

export type Visit = {
  page: Page;
  /** Opens an address of the console and waits until its socket is connected. */
  open: (path: string) => Promise<void>;
};
type VisitOptions = Pick<BrowserContextOptions, "colorScheme" | "viewport" | "acceptDownloads" | "timezoneId">;

/** A page of a fresh profile. */
export async function visitConsole(t: TestContext, url: string, options: VisitOptions = {}): Promise<Visit> {
  assert.ok(typeof chromium !== "string", String(missing));
  const context = await chromium.newContext({
    baseURL: url,
    locale: "en-US",
    timezoneId: "UTC",
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  t.after(() => context.close());
  const page = await watchedPage(t, context);
  return { page, open: (path) => open(page, path) };
}

export type WorldVisit = Visit & { world: World };

/** A server for the tests of a `describe`; each test visits its console. */
export function sharedConsole(
  environment: Environment = {},
): (t: TestContext, options?: VisitOptions) => Promise<WorldVisit> {
  const world = sharedWorld({ EVERSTEP_MONIKERS: MONIKERS, ...environment });
  return async (t, options = {}) => ({ ...(await visitConsole(t, world().server.url, options)), world: world() });
}

/** A page on which no script may throw and nothing may be refused by the content policy. */
async function watchedPage(t: TestContext, context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|WebSocket|ERR_CONNECTION/.test(message.text()))
      faults.push(message.text());
  });
  t.after(() => assert.deepEqual(faults, [], "the page met faults"));
  return page;
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.getByTestId("connection").filter({ hasText: "live" }).waitFor({ state: "attached" });
}

type AxeResult = { violations: { id: string; help: string; nodes: { html: string }[] }[] };

/** The rules of accessibility that the page breaks. */
export async function brokenRules(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe ?? (() => { ${axe.source} })()`);
  const { violations } = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'], elementRef: false })",
  )) as AxeResult;
  return violations.map(
    ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 300)).join(" | ")}`,
  );
}

/** Keeps a picture of the page as it is, for the documentation too where that is asked for. */
export async function picture(page: Page, name: string, isInDocs = false): Promise<void> {
  const folder = isInDocs && process.env["EVERSTEP_PICTURES"] === "1" ? PICTURES : ARTIFACTS;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });
}
