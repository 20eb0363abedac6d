import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const CHOICES = [
  { value: "approve", label: "Approve" },
  { value: "always", label: "Always approve this tool" },
  { value: "deny", label: "Deny" },
];

const approvalOf = (tool: string, args: JsonObject): JsonObject => ({
  text: `May I run ${tool}?`,
  choices: CHOICES,
  about: { kind: "tool", tool, args },
});

const EDIT = approvalOf("files/edit", {
  path: "notes/tea.md",
  old_text: "# Tea\n\nGreen tea steeps\nfor two minutes.\nNever boil it.\n",
  new_text: "# Tea\n\nGreen tea steeps\nfor three minutes.\nNever boil it.\n",
  all: false,
});

/** Long enough that the workspace's file is read in several pieces. */
const LINES = Array.from({ length: 4000 }, (_, index) => `line ${index + 1},`);

async function asking(world: World, agent_id: string, ask: JsonObject): Promise<string> {
  const frames: JsonValue = [{ text: "asked", ask, wait: {} }, { text: "answered" }];
  const { session_id } = await world.api.create("script", { agent_id, params: { frames } });
  await world.status(session_id, "waiting");
  return session_id;
}

async function answerTo(world: World, session_id: string): Promise<JsonValue | undefined> {
  await world.status(session_id, "done");
  const [, step] = await world.api.steps(session_id);
  assert.ok(step);
  return (step.guidance[0] as JsonObject)["answer"];
}

const card = (page: Page, session_id: string) => page.locator(`[data-testid=inbox-item][data-session="${session_id}"]`);
const current = (page: Page, session_id: string) =>
  page.locator(`[data-card=current][data-session="${session_id}"]`).waitFor();

describe("a call that has to be approved", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("names the tool, and leaves the arguments to their fields", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const ask = {
      ...EDIT,
      text: `May I run files/edit with ${JSON.stringify(EDIT["about"])}? (approve, always or deny)`,
    };
    const session_id = await asking(world, "brief", ask);
    await open(`/sessions/${session_id}`);
    const question = page.getByTestId("question");
    await question.getByText("May I run files/edit?", { exact: true }).waitFor();
    assert.equal(await question.getByText("approve, always or deny").count(), 0);
    await page.keyboard.press("d");
    assert.equal(await answerTo(world, session_id), "deny");
  });

  test("shows what it changes in a file, and is approved with arguments edited as text", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const session_id = await asking(world, "librarian", EDIT);
    await open("/inbox");
    const diff = card(page, session_id).getByTestId("line-diff");
    await diff.locator("[data-kind=removed]").getByText("for two minutes.").waitFor();
    await diff.locator("[data-kind=added]").getByText("for three minutes.").waitFor();
    assert.equal(await diff.locator("[data-kind=removed]").count(), 1);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "approval");
    await card(page, session_id).getByText("Arguments of files/edit").click();
    const text = card(page, session_id).getByLabel("new_text");
    await text.fill('# Tea\n"Hot"\n');
    await diff.locator("[data-kind=added]").getByText('"Hot"').waitFor();
    const all = card(page, session_id).getByLabel("all");
    await all.fill("tru");
    await card(page, session_id).getByText("This is not JSON.").waitFor();
    assert.ok(await card(page, session_id).getByRole("button", { name: "Approve", exact: true }).isDisabled());
    await all.fill("true");
    await card(page, session_id).getByRole("button", { name: "Approve", exact: true }).click();
    const { args } = EDIT["about"] as { args: JsonObject };
    assert.deepEqual(await answerTo(world, session_id), {
      choice: "approve",
      args: { ...args, new_text: '# Tea\n"Hot"\n', all: true },
    });
  });

  test("that overwrites a file is shown against what the workspace has", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { colorScheme: "dark" });
    const { session_id: chat } = await world.api.create("chat", { agent_id: "scribe" });
    const guidance = `write list.md: ${LINES.join(" ")}`;
    const sent = await world.api.post(pathOf("sessions", chat, "interrupt"), { guidance });
    await world.consumed(read(sent, 202, SHAPES.accepted).action_id);
    const overwrite = approvalOf("files/overwrite", { path: "list.md", text: `${LINES.join(" ")}\nand milk` });
    const fresh = approvalOf("files/overwrite", { path: "new.md", text: "hello" });
    const changed = await asking(world, "librarian", overwrite);
    const written = await asking(world, "librarian", fresh);
    await open("/inbox");
    await card(page, changed).getByText("It would change list.md:").waitFor();
    const diff = card(page, changed).getByTestId("line-diff");
    await diff.locator("[data-kind=added]").getByText("and milk").waitFor();
    await diff.locator("[data-kind=same]").getByText("line 1, line 2,").waitFor();
    assert.equal(await diff.locator("[data-kind=removed]").count(), 0);
    await card(page, written).getByText("It would write new.md:").waitFor();
    assert.equal(await card(page, written).locator("[data-kind=added]").count(), 1);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "approval-overwrite");
    for (const session_id of [changed, written]) await world.control(session_id, "destroy");
  });

  test("is approved by a and denied by d, the card in the frame and no other", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const ids: string[] = [];
    for (const name of ["one", "two", "three"])
      ids.push(await asking(world, name, approvalOf("mail/send", { to: name })));
    const [first = "", second = "", third = ""] = ids;
    await open("/inbox");
    // The newest is on top.
    await current(page, third);
    await page.keyboard.press("j");
    await current(page, second);
    // A new one does not move the current one.
    const late = await asking(world, "late", approvalOf("mail/send", { to: "late" }));
    await card(page, late).waitFor();
    await current(page, second);
    await page.keyboard.press("a");
    assert.equal(await answerTo(world, second), "approve");
    await card(page, second).waitFor({ state: "detached" });
    await current(page, first);
    await card(page, first).getByLabel("Reason").fill("Not today");
    // In a field they are letters.
    await page.keyboard.type("ad");
    await card(page, first)
      .getByLabel("Reason")
      .evaluate((field: unknown) => (field as { blur(): void }).blur());
    await page.keyboard.press("d");
    assert.deepEqual(await answerTo(world, first), { choice: "deny", reason: "Not todayad" });
    for (const waiting of [third, late]) assert.equal((await world.api.session(waiting)).status, "waiting");
    await open(`/sessions/${third}`);
    await page.getByTestId("question").waitFor();
    await page.keyboard.press("d");
    assert.equal(await answerTo(world, third), "deny");
    await open(`/sessions/${late}`);
    await page.getByTestId("question").waitFor();
    await page.keyboard.press("a");
    assert.equal(await answerTo(world, late), "approve");
  });

  test("is counted in the tab's title, and notified once a person has asked for that", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    // A headless browser has no notifications: this stub grants them and records requests and messages. The window counts as
    // hidden.
    await page.addInitScript(`
      globalThis.shown = []; globalThis.requests = 0;
      globalThis.Notification = class extends EventTarget {
        static permission = requests === 0 && !localStorage.getItem("everstep.notify") ? "default" : "granted";
        static async requestPermission() { requests += 1; return (this.permission = "granted"); }
        constructor(title, { body }) { super(); shown.push(title + ": " + body); globalThis.last = this; }
        close() {}
      };
      document.hasFocus = () => false;`);
    await open("/inbox");
    await page.getByText("Nothing needs you").waitFor();
    assert.equal(await page.title(), "Needs me · Everstep");
    const quiet = await asking(world, "quiet", approvalOf("mail/send", { to: "ann" }));
    await eventually("the title counts one", async () => (await page.title()) === "(1) Needs me · Everstep");
    assert.deepEqual(await page.evaluate("[requests, shown]"), [0, []]);
    await page.getByRole("button", { name: "Notify me" }).click();
    await page.getByRole("button", { name: "Notifications are on" }).waitFor();
    const loud = await asking(world, "loud", approvalOf("mail/send", { to: "bob" }));
    await eventually("the title counts two", async () => (await page.title()) === "(2) Needs me · Everstep");
    await eventually("it is notified", async () => Number(await page.evaluate("shown.length")) === 1);
    assert.deepEqual(await page.evaluate("[requests, shown]"), [1, ["loud asks a question: May I run mail/send?"]]);
    await page.evaluate('last.dispatchEvent(new Event("click"))');
    await page.getByRole("heading", { name: "loud" }).waitFor();
    for (const session_id of [quiet, loud]) await world.control(session_id, "destroy");
    await eventually("nobody is needed", async () => !(await page.title()).startsWith("("));
    await open("/inbox");
    await page.getByRole("button", { name: "Notifications are on" }).click();
    await page.getByRole("button", { name: "Notify me" }).waitFor();
  });
});
