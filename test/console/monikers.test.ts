import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { Api } from "../server/api.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { brokenRules, picture, visitConsole, WITH_BROWSER } from "./console-fixture.ts";

const teller = (word: string) => ({ "teller.ts": monikerFile("teller", JSON.stringify(word), { kind: "finite" }) });

describe("the pages of monikers", WITH_BROWSER, () => {
  test("load changed code, and show which versions sessions used", TIMEOUT, async (t) => {
    await using files = await MonikerFiles.with(teller("old"));
    await using server = await ServerProcess.start({ EVERSTEP_MONIKERS: files.folder });
    const api = new Api(server.url);
    const run = async (agent_id: string) => {
      const { session_id } = await api.create("teller", { agent_id, options: { max_steps: 1 } });
      await eventually("a step", async () => (await api.steps(session_id)).length === 1);
      return session_id;
    };
    await run("ada");
    const { page, open } = await visitConsole(t, server.url);
    await open("/");
    await page.getByRole("link", { name: "Monikers" }).click();
    await page.getByRole("link", { name: "teller" }).click();
    const versions = page.getByTestId("version");
    await versions.first().getByText("current").waitFor();
    assert.equal(await versions.count(), 1);
    assert.equal(await page.title(), "teller · Monikers · Everstep");

    await page.getByRole("link", { name: "All monikers" }).click();
    await files.write(teller("new"));
    await page.getByRole("button", { name: "Load changed code" }).click();
    await page.getByText("1 moniker changed").waitFor();
    const newest = await run("ben");
    await page.getByRole("link", { name: "teller" }).click();
    await eventually("both versions", async () => (await versions.count()) === 2);
    assert.match((await versions.first().textContent()) ?? "", /current1/);
    assert.doesNotMatch((await versions.last().textContent()) ?? "", /current/);
    assert.deepEqual(await brokenRules(page), []);
    await picture(page, "moniker");
    await page.getByRole("link", { name: `ben ${newest.slice(-5)}` }).click();
    await page.waitForURL(`**/sessions/${newest}`);

    const { session_id } = await api.create("teller", {
      agent_id: "cleo",
      options: { stop_on_done: false, step_interval_ms: 20 },
    });
    const saysLast = async (text: string) => (await api.steps(session_id)).at(-1)?.text === text;
    for (const text of ["passing", "new"]) {
      await eventually("a step on the version before", async () => (await api.session(session_id)).iteration >= 0);
      await files.write(teller(text));
      await api.post("/api/monikers/reload", {});
      await eventually(`a step that says ${text}`, () => saysLast(text));
    }
    await api.post(`/api/sessions/${session_id}/destroy`, {});
    await open("/monikers/teller");
    await eventually("a version that ran in the middle only", async () => (await versions.count()) === 3);
    assert.match((await versions.first().textContent()) ?? "", /current2/);

    await files.write({ "teller.ts": "export const x = ;" });
    await open("/monikers");
    await page.getByRole("button", { name: "Load changed code" }).click();
    await page.getByRole("alert").getByText("teller keeps its previous version").waitFor();
    assert.deepEqual(await brokenRules(page), []);
    await open("/monikers/absent");
    await page.getByText("No moniker named absent").waitFor();
  });
});
