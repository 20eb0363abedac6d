import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { ModelServer, reply } from "../llm/model-server.ts";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, sharedConsole, WITH_BROWSER } from "./console-fixture.ts";

/** Writes how long tea steeps. The tests change its file. */
const steeping = (minutes: string): string =>
  monikerFile("steeping", "0", {
    kind: "reactive",
    more: `step: ({ step, state, guidance = [] }: any) => {
    if (guidance.includes("boil")) throw new Error("never boil it");
    const cups = (state.cups ?? 0) + 1;
    return { step, next_step: "brew", state: { cups }, text: "Let it steep for ${minutes} minutes: " + guidance.join(), done: false };
  },`,
  });

const files = await MonikerFiles.with({ "steeping.ts": steeping("two") });
const model = await ModelServer.open();
after(async () => {
  await model[Symbol.asyncDispose]();
  await files[Symbol.asyncDispose]();
});

describe("a recorded step", WITH_BROWSER, () => {
  const visit = sharedConsole({
    EVERSTEP_MONIKERS: files.folder,
    OPENAI_BASE_URL: model.url,
    OPENAI_API_KEY: "sk-test",
  });

  test("is rerun on today's code and with other guidance, and kept as a fork", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 1440, height: 900 } });
    const { session_id } = await world.api.create("steeping", { agent_id: "kettle" });
    for (const guidance of ["green", "black"]) {
      const sent = await world.api.post(pathOf("sessions", session_id, "interrupt"), { guidance });
      await world.consumed(read(sent, 202, SHAPES.accepted).action_id);
    }
    const rows = await world.api.steps(session_id);
    await open(`/sessions/${session_id}?step=1`);
    await page.getByRole("button", { name: "Rerun…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Run it" }).click();
    await dialog.getByText("Same result as recorded.").waitFor();

    await files.write({ "steeping.ts": steeping("three") });
    await world.api.post("/api/monikers/reload");
    await dialog.getByLabel("Guidance").fill("white");
    await dialog.getByText("State before the step").click();
    await dialog.getByLabel("State").fill('{"cups": 7}');
    await dialog.getByRole("button", { name: "Run it again" }).click();
    await dialog.getByText("Different: state, text.").waitFor();
    const marks = dialog.getByTestId("rerun-result").locator("mark");
    assert.deepEqual(await marks.allTextContents(), ["two", "black", "three", "white"]);
    await dialog.getByTestId("changes").getByText("8").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "rerun");
    assert.deepEqual(await world.api.steps(session_id), rows, "nothing was written");

    await dialog.getByLabel("Guidance").fill("boil");
    await dialog.getByRole("button", { name: "Run it again" }).click();
    await dialog.getByText("Failed: Error: never boil it").waitFor();
    await dialog.getByLabel("Guidance").fill("white");
    await dialog.getByRole("button", { name: "Run it again" }).click();
    await dialog.getByText("Different: state, text.").waitFor();
    await dialog.getByRole("button", { name: "Fork from step 0 with this" }).click();
    await page.getByRole("link", { name: "Forked at step 0" }).waitFor();
    const fork_id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await world.iteration(fork_id, 1);
    const [, step] = await world.api.steps(fork_id);
    assert.deepEqual([step?.text, step?.state], ["Let it steep for three minutes: white", { cups: 8 }]);
  });

  test("is rerun on another model, and forked with it", TIMEOUT, async (t) => {
    const { page, world, open } = await visit(t, { viewport: { width: 375, height: 720 } });
    const options = { max_steps: 2, step_interval_ms: 0 };
    const { session_id } = await world.api.create("joke", { params: { subject: "tea" }, options });
    await world.status(session_id, "stopped");
    await open(`/sessions/${session_id}?step=1`);
    await page.getByRole("button", { name: "Rerun…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Model").fill("nobody/x");
    await dialog.getByRole("button", { name: "Run it" }).click();
    await dialog.locator("[aria-invalid=true]").waitFor();
    model.will(reply(JSON.stringify({ text: "Tea, said the model." })));
    await dialog.getByLabel("Model").fill("openai/test");
    await dialog.getByRole("button", { name: "Run it" }).click();
    await dialog.getByRole("group", { name: "Now" }).getByText("Tea, said the model.").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "rerun-narrow");
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "Fork from here…" }).click();
    await dialog.getByText("Change its model, state, parameters or options").click();
    await dialog.getByLabel("Model").fill("openai/test");
    model.otherwise(reply(JSON.stringify({ text: "A fork's tea." })));
    await dialog.getByLabel("Options").fill('{"max_steps": 3}');
    await dialog.getByRole("button", { name: "Fork from step 1" }).click();
    await page.waitForURL((url) => !url.pathname.includes(session_id));
    const fork_id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const fork = await world.status(fork_id, "stopped");
    assert.deepEqual([fork.options.model, fork.result], ["openai/test", "A fork's tea."]);
  });
});
