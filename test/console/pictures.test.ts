import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { ScriptedModel } from "../../src/main/demo/scripted-model.ts";
import { IS_LONG } from "../repetitions.ts";
import { REPOSITORY } from "../repository-files.ts";
import { eventually } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { brokenRules, picture, RENEWS_DOCS, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";
import { drawn } from "./in-page.ts";
import { setManyScene } from "./many-scene.ts";
import { setScene } from "./scene.ts";

/** The pictures in docs/console.md, by their name here. */
const IN_DOCS: Readonly<Record<string, string>> = {
  "few/sessions-light-1440": "sessions-light",
  "few/approval-dark-1440": "now-dark",
  "few/crash-light-1440": "picture-light",
  "few/calls-dark-1440": "calls-dark",
  "few/tree-light-1440": "graph-light",
  "few/compare-light-1440": "compare-light",
  "few/receipts-light-1440": "receipts-light",
  "few/conversation-dark-1440": "conversation-dark",
  "few/inbox-light-1440": "inbox-light",
  "few/start-dark-1440": "start-dark",
  "few/system-light-1440": "system-light",
  "few/approval-light-375": "phone-light",
};

/** A page by its address, a text that shows when it is loaded, and what to do then. */
type View = [name: string, path: string, shown: string, act?: (page: Page) => Promise<unknown>];
type Look = { colorScheme: "light" | "dark"; width: number; height: number };
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 375, height: 812 };
/** Every view in both color schemes and both widths; all four combinations take minutes, so they are taken only on request. */
const LOOKS: readonly Look[] = [
  { colorScheme: "light", ...WIDE },
  { colorScheme: "dark", ...NARROW },
  ...(RENEWS_DOCS || IS_LONG
    ? ([
        { colorScheme: "dark", ...WIDE },
        { colorScheme: "light", ...NARROW },
      ] as const)
    : []),
];
const LIMIT = { timeout: 540_000 };

const press = (name: string) => (page: Page) => page.locator("main").getByRole("button", { name }).first().click();
/** What opens a dialog, which may be loaded only then. */
const opening = (act: (page: Page) => Promise<unknown>) => async (page: Page) => {
  await act(page);
  await page.getByRole("dialog").waitFor();
};

const model = await ScriptedModel.open({ word_ms: 5 });
after(() => model[Symbol.asyncDispose]());
const TOOLS = fileURLToPath(new URL("tools", import.meta.url));
const scratch = await scratchFolder();
after(() => scratch[Symbol.asyncDispose]());
const prices = join(scratch.path, "prices.json");
await writeFile(prices, JSON.stringify({ "openai/scripted": { input: 3, output: 15 } }));
// Only the clerk uses it; the others work without a model.
const { EVERSTEP_MODEL: _, ...provider } = model.environment;
const environment = {
  ...provider,
  EVERSTEP_PRICES: prices,
  EVERSTEP_TOOLS: TOOLS,
  EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1",
};

/** Checks every view against the accessibility rules, in light and dark, wide and narrow, and keeps a picture of it. */
function checkViews(scene: string, setUp: (world: World) => Promise<View[]>): void {
  const visit = sharedConsole(environment);
  test("are accessible and fit on the screen", LIMIT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 1440, height: 900 } });
    const views = await setUp(world);
    const broken: string[] = [];
    // A headless browser refuses notifications; one with a window would ask.
    await page.addInitScript('Object.defineProperty(Notification, "permission", { value: "default" })');
    await open("/");
    for (const [view, path, shown, act] of views) {
      for (const { colorScheme, width, height } of LOOKS) {
        const name = `${scene}/${view}-${colorScheme}-${width}`;
        if (RENEWS_DOCS && IN_DOCS[name] === undefined) continue;
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height });
        await page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`);
        await eventually(`${name} shows ${shown}`, () => page.locator(shown).first().isVisible());
        await act?.(page);
        await settled(page);
        await picture(page, name, IN_DOCS[name]);
        broken.push(...(await brokenRules(page)).map((rule) => `${name}: ${rule}`));
        broken.push(...(await tooWide(page, width)).map((fault) => `${name}: ${fault}`));
        if (act) await page.keyboard.press("Escape");
      }
    }
    assert.deepEqual(broken, []);
  });
}

describe("the pages of a new server", WITH_BROWSER, () => {
  checkViews("empty", async ({ api }) => {
    const { session_id } = await api.create("echo", { agent_id: "new" });
    const conversation_id = await api.conversation({ title: "New" });
    return [
      ["sessions", "/?agent=nobody", "text=No matching sessions"],
      ["session", `/sessions/${session_id}`, "[data-testid=current-step]"],
      ["graph", `/sessions/${session_id}?tab=graph`, "text=No steps yet"],
      ["receipts", `/sessions/${session_id}?tab=receipts`, "[data-testid=receipt]"],
      ["plots", `/sessions/${session_id}?tab=plots`, "text=Plots start with the first step"],
      ["about", `/sessions/${session_id}?tab=about`, "text=State now"],
      ["unknown-session", "/sessions/nowhere", "text=Session not found"],
      ["conversation", `/conversations/${conversation_id}`, "text=No messages yet"],
      ["inbox", "/inbox", "text=Nothing needs you"],
      ["agents", "/agents", "[data-testid=agent]"],
      ["start", "/start", "text=Choose a task"],
      ["search", "/search", "text=Search all history"],
      ["search-nothing", "/search?q=nowhere", "text=No matches"],
      ["costs", "/costs", "text=No usage in this period"],
      ["monikers", "/monikers", "[data-testid=moniker]"],
      ["moniker", "/monikers/joke", "[data-testid=version]"],
      ["tools", "/tools", "[data-testid=tool]"],
      ["webhooks", "/webhooks", "text=No webhooks yet"],
      ["system", "/system", ".u-wrap"],
      ["compare", "/compare", "text=Choose two sessions"],
      ["unknown-page", "/nowhere", "text=Page not found"],
    ];
  });
});

describe("the pages of a server with a few sessions", WITH_BROWSER, () => {
  checkViews("few", async (world) => {
    const scene = await setScene(world);
    const session = (id: string, query = "") => `/sessions/${id}${query}`;
    await world.api.put("/api/webhooks/ops", { url: "http://127.0.0.1:9/hook", events: ["session.asks"] });
    return [
      ["sessions", "/", "[data-testid=session-row]"],
      ["grouped", "/?group=agent", "[data-testid=agent-group]"],
      ["palette", "/", "[data-testid=session-row]", opening((page) => page.keyboard.press("Control+k"))],
      ["help", "/", "[data-testid=session-row]", opening((page) => page.keyboard.press("?"))],
      ["approval", session(scene.clerk_id), "[data-testid=question]"],
      ["question", session(scene.asking_id), "[data-testid=question]"],
      ["crash", session(scene.crashed_id, "?tab=picture"), "text=1 crash"],
      ["session", session(scene.session_id, "?step=3"), "[data-testid=changes]"],
      ["calls", session(scene.clerk_id, "?step=2"), "[data-testid=call]"],
      ["call-tools", session(scene.caller_id, "?step=0"), "[data-testid=call]"],
      ["graph", session(scene.clerk_id, "?tab=graph"), "[data-testid=step-graph]"],
      ["tree", session(scene.researcher_id, "?tab=graph"), "[data-testid=branch] [data-testid=branch]"],
      ["children", session(scene.researcher_id, "?tab=children"), "[data-testid=child]"],
      ["receipts", session(scene.session_id, "?tab=receipts"), "[data-testid=receipt]"],
      ["plots", session(scene.session_id, "?tab=plots"), ".u-wrap"],
      ["about", session(scene.session_id, "?tab=about"), "text=State now"],
      ["fork", session(scene.session_id), "[data-testid=current-step]", opening(press("Fork…"))],
      ["rerun", session(scene.session_id, "?step=3"), "[data-testid=changes]", opening(press("Rerun…"))],
      ["compare", `/compare/${scene.session_id}/${scene.fork_id}`, "[data-differs=true]"],
      ["conversations", "/conversations", "text=Release 2.4"],
      ["conversation", `/conversations/${scene.conversation_id}`, "[data-sender=agent] .prose code"],
      ["inbox", "/inbox", "[data-testid=inbox-item]"],
      ["agents", "/agents", "[data-testid=agent]"],
      ["start", "/start?moniker=typist", "form"],
      ["search", "/search?q=tea", "[data-testid=hit]"],
      ["costs", "/costs", "[data-testid=cost]"],
      ["moniker", "/monikers/joke", "[data-testid=version]"],
      ["tools", "/tools?q=files/read", "[data-testid=tool]", press("files/read")],
      ["webhooks", "/webhooks", "[data-testid=webhook]"],
      ["system", "/system", ".u-wrap"],
    ];
  });

  test("of the documentation are there, small enough", async () => {
    const page = await readFile(join(REPOSITORY, "docs/console.md"), "utf8");
    const shown = [...page.matchAll(/\(pictures\/([\w-]+)\.png\)/g)].map(([, name]) => name);
    assert.deepEqual(shown, Object.values(IN_DOCS));
    for (const name of Object.values(IN_DOCS)) {
      const { size } = await stat(join(REPOSITORY, `docs/pictures/${name}.png`));
      assert.ok(size < 200 * 1024, `${name} has ${size} bytes`);
    }
  });
});

describe("the pages of a server with very many sessions", WITH_BROWSER, () => {
  checkViews("many", async (world) => {
    const { long_id, forked_id, conversation_id } = await setManyScene(world);
    return [
      ["sessions", "/", "[data-testid=session-row]"],
      ["grouped", "/?group=agent", "[data-testid=agent-group]"],
      ["session", `/sessions/${long_id}`, "[data-testid=current-step]"],
      ["step", `/sessions/${long_id}?step=1500`, "[data-testid=changes]"],
      ["plots", `/sessions/${long_id}?tab=plots`, ".u-wrap"],
      ["tree", `/sessions/${forked_id}?tab=graph`, "[data-testid=branch] [data-testid=branch]"],
      ["compare", `/compare/${long_id}/${forked_id}`, "[data-testid=comparison]"],
      ["conversation", `/conversations/${conversation_id}`, "[data-testid=message]"],
      ["inbox", "/inbox", "[data-testid=inbox-item]"],
      ["agents", "/agents", "[data-testid=agent]"],
      ["search", "/search?q=agent", "[data-testid=hit]"],
      ["costs-by-agent", "/costs?by=agent", "[data-testid=cost]"],
      ["costs-by-model", "/costs?by=model", "[data-testid=cost]"],
      ["moniker", "/monikers/count", "[data-testid=version]"],
      ["webhooks", "/webhooks", "[data-testid=delivery]"],
      ["system", "/system", ".u-wrap"],
    ];
  });
});

/** Resolves when everything is loaded, so that a picture shows all of it. */
async function settled(page: Page): Promise<void> {
  for (const words of ["Loading…", "loading more…"]) await page.getByText(words).first().waitFor({ state: "detached" });
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.evaluate("document.fonts.ready");
  await drawn(page);
}

async function tooWide(page: Page, width: number): Promise<string[]> {
  const actual = Number(await page.evaluate("document.documentElement.scrollWidth"));
  return actual === width ? [] : [`it is ${actual} pixels wide`];
}
