import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { REPOSITORY } from "../repository-files.ts";
import type { Environment } from "../server/spawn-everstep.ts";
import { sharedWorld, type World } from "../server/world.ts";
import { launchChromium } from "./chromium.ts";

export const BUILT = join(REPOSITORY, "console/dist");
const MONIKERS = fileURLToPath(new URL("monikers", import.meta.url));
const AXE = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const ARTIFACTS = fileURLToPath(new URL("artifacts", import.meta.url));
const PICTURES = join(REPOSITORY, "docs/pictures");
/** Milliseconds after which a page counts as broken. */
const PATIENCE_MS = 60_000;

assert.ok(existsSync(join(BUILT, "index.html")), "the console is not built: npm run build");

const chromium = await launchChromium().catch((error: unknown) => String(error));
const missing =
  typeof chromium === "string"
    ? `Chromium does not run here (${chromium.split("\n")[0]}): set CHROMIUM to one that does, or install the libraries it names`
    : false;

/** For `describe`: skips its tests if there is no browser, unless EVERSTEP_TEST_ALL=1. */
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

/** A page in a fresh profile. */
export async function visitConsole(t: TestContext, url: string, options: VisitOptions = {}): Promise<Visit> {
  assert.ok(typeof chromium !== "string", String(missing));
  const context = await chromium.newContext({
    baseURL: url,
    locale: "en-US",
    timezoneId: "UTC",
    viewport: { width: 1280, height: 800 },
    // Animations would be drawn sixty times a second, on the CPU that runs the tests.
    reducedMotion: "reduce",
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

/** A page that fails the test if a script throws or the content policy refuses something. */
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

/** The accessibility rules that the page breaks. */
export async function brokenRules(page: Page): Promise<string[]> {
  // Half a megabyte, which a page is given once.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(AXE);
  const { violations } = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'], elementRef: false })",
  )) as AxeResult;
  return violations.map(
    ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 300)).join(" | ")}`,
  );
}

/** `all` keeps a picture of every view to look at; `docs` renews the pictures of the documentation and takes no others. */
const PICTURES_KEPT = process.env["EVERSTEP_PICTURES"];
export const RENEWS_DOCS = PICTURES_KEPT === "docs";

/** Saves a picture of the page if pictures are wanted, and a copy for the documentation if it has a name there. */
export async function picture(page: Page, name: string, nameInDocs?: string): Promise<void> {
  if (PICTURES_KEPT === undefined) return;
  const path = join(ARTIFACTS, `${name}.png`);
  await mkdir(dirname(path), { recursive: true });
  await page.screenshot({ path, animations: "disabled" });
  if (nameInDocs !== undefined && RENEWS_DOCS) await copyFile(path, join(PICTURES, `${nameInDocs}.png`));
}
