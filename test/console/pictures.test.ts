import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { REPOSITORY } from "../repository-files.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER, type WorldVisit } from "./console-fixture.ts";
import { drawn } from "./in-page.ts";
import { type Scene, setScene } from "./scene.ts";

/** The pictures of docs/console.md. */
const IN_DOCS = [
  "sessions-light",
  "session-dark",
  "compare-light",
  "receipts-light",
  "conversation-dark",
  "inbox-light",
  "start-dark",
  "system-light",
];

describe("the main views", WITH_BROWSER, () => {
  const visit = sharedConsole();
  let scene: Scene | undefined;

  /** Keeps a picture of every view and tells the rules of accessibility that it breaks. */
  const lookAround = async ({ page, world, open }: WorldVisit, name: string): Promise<string[]> => {
    scene ??= await setScene(world);
    const broken: string[] = [];
    await open("/");
    for (const [view, path, shown] of viewsOf(scene)) {
      await page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`);
      await eventually(`${view} shows ${shown}`, () => page.locator(shown).first().isVisible());
      await settled(page);
      broken.push(...(await brokenRules(page)).map((rule) => `${view}: ${rule}`));
      await picture(page, `${view}-${name}`, IN_DOCS.includes(`${view}-${name}`));
      if (name === "narrow" && view !== "compare")
        broken.push(...(await tooWide(page)).map((fault) => `${view}: ${fault}`));
    }
    return broken;
  };

  for (const colorScheme of ["light", "dark"] as const) {
    test(`are accessible and kept as pictures, ${colorScheme}`, TIMEOUT, async (t) => {
      assert.deepEqual(await lookAround(await visit(t, { colorScheme }), colorScheme), []);
    });
  }

  test("of the documentation are there, small enough", async () => {
    const page = await readFile(join(REPOSITORY, "docs/console.md"), "utf8");
    const shown = [...page.matchAll(/\(pictures\/([\w-]+)\.png\)/g)].map(([, name]) => name);
    assert.deepEqual(shown, IN_DOCS);
    for (const name of IN_DOCS) {
      const { size } = await stat(join(REPOSITORY, `docs/pictures/${name}.png`));
      assert.ok(size < 150 * 1024, `${name} has ${size} bytes`);
    }
  });

  test("are accessible and fit on a screen of 375 pixels", TIMEOUT, async (t) => {
    assert.deepEqual(await lookAround(await visit(t, { viewport: { width: 375, height: 720 } }), "narrow"), []);
  });
});

const viewsOf = ({
  session_id,
  fork_id,
  asking_id,
  conversation_id,
}: Scene): [view: string, path: string, shown: string][] => [
  ["sessions", "/", "[data-testid=session-row]"],
  ["session", `/sessions/${session_id}?step=3`, "[data-testid=changes]"],
  ["question", `/sessions/${asking_id}`, "[data-testid=question]"],
  ["receipts", `/sessions/${session_id}?tab=receipts`, "[data-testid=receipt]"],
  ["plots", `/sessions/${session_id}?tab=plots`, ".u-wrap"],
  ["compare", `/compare/${session_id}/${fork_id}`, "[data-differs=true]"],
  ["conversation", `/conversations/${conversation_id}`, "[data-sender=agent] .prose code"],
  ["inbox", "/inbox", "[data-testid=inbox-item]"],
  ["agents", "/agents", "main li"],
  ["start", "/start?moniker=typist", "form"],
  ["search", "/search?q=tea", "[data-testid=hit]"],
  ["system", "/system", ".u-wrap"],
];

/** What was read is drawn. */
async function settled(page: Page): Promise<void> {
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.evaluate("document.fonts.ready");
  await drawn(page);
}

async function tooWide(page: Page): Promise<string[]> {
  const width = Number(await page.evaluate("document.documentElement.scrollWidth"));
  return width === 375 ? [] : [`it is ${width} pixels wide`];
}
