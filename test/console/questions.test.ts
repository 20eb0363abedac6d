import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

const item = (page: Page, session_id: string) => page.locator(`[data-testid=inbox-item][data-session="${session_id}"]`);
const HOUR_MS = 3_600_000;

const CALL = { kind: "tool", tool: "files/write", args: { path: "notes.md", text: "first" } };
const APPROVAL: JsonObject = {
  text: "May I write notes.md?",
  choices: [{ value: "approve", label: "Approve" }, { value: "always", label: "Always" }, { value: "deny" }],
  about: CALL,
};
const ORDER: JsonObject = {
  text: "What shall I order?",
  about: { shop: "<b>Tea & Co</b>" },
  schema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Your name", minLength: 2, maxLength: 20 },
      mail: { type: "string", format: "email" },
      tea: { type: "string", enum: ["green", "black"] },
      cups: { type: "integer", minimum: 1, maximum: 9 },
      milk: { type: "boolean" },
      extras: { type: "array", items: { type: "string", enum: ["honey", "lemon"] } },
      when: { type: "string", format: "date-time" },
    },
    required: ["name", "tea", "cups"],
  },
};

/** A session that asks with its first step and is done with its second. */
async function asking(world: World, ask: JsonObject, wait: JsonObject = {}): Promise<string> {
  const frames: JsonValue = [{ text: "asked", ask, wait }, { text: "answered" }];
  const { session_id } = await world.api.create("script", { agent_id: "clerk", params: { frames } });
  await world.status(session_id, "waiting");
  return session_id;
}

/** The guidance of the step after the question. */
async function answered(world: World, session_id: string): Promise<JsonValue> {
  await world.status(session_id, "done");
  const [, step] = await world.api.steps(session_id);
  const [answer, ...more] = step?.guidance ?? [];
  assert.equal(more.length, 0);
  const { question_id, ...rest } = answer as JsonObject;
  assert.equal(typeof question_id, "string");
  return rest;
}

describe("what a session asks", WITH_BROWSER, () => {
  const visit = sharedConsole();

  test("is answered in the inbox by one of its buttons", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const session_id = await asking(world, APPROVAL);
    await open("/inbox");
    await item(page, session_id).getByText("May I write notes.md?").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "question-choices");
    await item(page, session_id).getByRole("button", { name: "deny" }).click();
    await item(page, session_id).waitFor({ state: "detached" });
    assert.deepEqual(await answered(world, session_id), { answer: "deny", user_id: "operator" });
  });

  test("is approved with other arguments, which must be a JSON object", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const session_id = await asking(world, APPROVAL);
    await open(`/sessions/${session_id}`);
    await page.getByRole("button", { name: "Edit as JSON" }).click();
    const args = page.getByRole("textbox", { name: "Arguments of files/write" });
    assert.deepEqual(JSON.parse(await args.inputValue()), CALL.args);
    await args.fill('{"path": "notes.md", ');
    await page.getByText("This is not a JSON object.").waitFor();
    assert.ok(await page.getByRole("button", { name: "Approve" }).isDisabled());
    await args.fill('{"path": "notes.md", "text": "second"}');
    await page.getByRole("button", { name: "Approve" }).click();
    const answer = { choice: "approve", args: { path: "notes.md", text: "second" } };
    assert.deepEqual(await answered(world, session_id), { answer, user_id: "operator" });
    await page.getByTestId("question").waitFor({ state: "detached" });
  });

  test("about a call that may have happened is answered with its result", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const choices = [{ value: "again" }, { value: "skip" }, { value: "result" }];
    const about = { kind: "in_doubt", tool: "bank/pay", args: { amount: 3 } };
    const session_id = await asking(world, { text: "Was it paid?", choices, about });
    await open("/inbox");
    await item(page, session_id).getByRole("button", { name: "result" }).click();
    await item(page, session_id).getByText("Enter the result.").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await item(page, session_id).getByLabel("Result of the call, if you know it").fill('{"paid": true}');
    await item(page, session_id).getByRole("button", { name: "result" }).click();
    const answer = { choice: "result", result: { paid: true } };
    assert.deepEqual(await answered(world, session_id), { answer, user_id: "operator" });
  });

  test(
    "is answered with a form, by the keyboard, and the server's objections stand at the fields",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t, { timezoneId: "Asia/Tokyo" });
      const session_id = await asking(world, ORDER);
      await open(`/sessions/${session_id}`);
      const form = page.getByTestId("question").locator("form");
      await form.waitFor();
      await page.keyboard.press("a");
      await page.keyboard.type("A");
      await page.keyboard.press("Enter");
      await eventually(
        "two fields are required",
        async () => (await form.getByText("This is required.").count()) === 2,
      );
      await form.getByLabel("tea").selectOption("green");
      await form.getByLabel("mail").fill("nobody");
      await form.getByLabel("cups").fill("12");
      await form.getByLabel("lemon").check();
      await form.getByLabel("when").fill("2030-01-02T09:00");
      await form.getByRole("button", { name: "Answer" }).click();
      await form.getByText("must have at least 2 characters").waitFor();
      await form.locator("[name=name]:focus").waitFor();
      for (const label of ["Your name", "mail", "cups"])
        assert.equal(await form.getByLabel(label).getAttribute("aria-invalid"), "true", label);
      assert.equal(await form.getByLabel("tea").getAttribute("aria-invalid"), "false");
      assert.deepEqual(await brokenRules(page), []);
      await picture(page, "question-form");
      await form.getByLabel("Your name").fill("Ann");
      await form.getByLabel("mail").fill("");
      await form.getByLabel("cups").fill("2");
      await form.getByLabel("cups").press("Enter");
      const answer = {
        name: "Ann",
        tea: "green",
        cups: 2,
        milk: false,
        extras: ["lemon"],
        when: "2030-01-02T00:00:00.000Z",
      };
      assert.deepEqual(await answered(world, session_id), { answer, user_id: "operator" });
    },
  );

  test(
    "is answered in the person's own words, under their name, and the receipt tells the step",
    TIMEOUT,
    async (t) => {
      const { page, world, open } = await visit(t);
      const until = new Date(Date.now() + 2 * HOUR_MS + 60_000).toISOString();
      const session_id = await asking(world, { text: "Which colour?" }, { until });
      await open("/inbox");
      const name = page.getByLabel("You are");
      await name.fill("Ann");
      await name.press("Enter");
      await item(page, session_id)
        .getByText(/^Waiting for an answer until .* \(in 2h\)\.$/)
        .waitFor();
      assert.ok(await item(page, session_id).getByRole("button", { name: "Answer" }).isDisabled());
      await item(page, session_id).getByLabel("Your answer").fill("<i>blue</i>");
      await item(page, session_id).getByLabel("Your answer").press("Control+Enter");
      assert.deepEqual(await answered(world, session_id), { answer: "<i>blue</i>", user_id: "Ann" });
      await open(`/sessions/${session_id}?tab=receipts`);
      const receipt = page.getByTestId("receipt").filter({ hasText: "<i>blue</i>" });
      await receipt.getByRole("button", { name: "consumed at step 1" }).waitFor();
    },
  );

  test("and was answered by somebody else meanwhile is said, and goes away", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t);
    const session_id = await asking(world, APPROVAL);
    await open("/inbox");
    // Another person's answer is used between the click and the arrival of this one.
    await page.route("**/answer", async (route) => {
      const path = pathOf("sessions", session_id, "answer");
      read(await world.api.post(path, { answer: "always", user_id: "bob" }), 202, SHAPES.accepted);
      await world.status(session_id, "done");
      await route.continue();
    });
    await item(page, session_id).getByRole("button", { name: "Approve" }).click();
    await page.getByText("Somebody else has answered this question.").waitFor();
    await item(page, session_id).waitFor({ state: "detached" });
    assert.deepEqual(await answered(world, session_id), { answer: "always", user_id: "bob" });
  });
});
