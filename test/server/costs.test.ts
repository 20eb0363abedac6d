import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { sharedModelServer } from "../llm/llm-fixture.ts";
import { reply } from "../llm/model-server.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api, problemOf } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

type Costs = {
  prices_as_of: string;
  total: { sessions: number; tokens_used: number; cost_usd: number };
  costs: { key: string | null; sessions: number; tokens_used: number; cost_usd: number }[];
};

describe("GET /api/costs", () => {
  const model = sharedModelServer();

  test(
    "sums up what sessions cost by day, agent and model, with own prices over those of the catalog",
    TIMEOUT,
    async () => {
      await using folder = await scratchFolder();
      const prices = join(folder.path, "prices.json");
      await writeFile(prices, JSON.stringify({ "openai/mine": { input: 1000, output: 2000, cache_read: 100 } }));
      await using server = await ServerProcess.start({
        EVERSTEP_MODEL: "openai/mine",
        OPENAI_BASE_URL: model().url,
        EVERSTEP_PRICES: prices,
      });
      const api = new Api(server.url);
      model().otherwise(reply('{"text": "A joke."}', { usage: { input: 1000, output: 100, cached: 500 } }));
      const run = async (agent_id: string, options = {}) => {
        const { session_id } = await api.create("joke", {
          agent_id,
          options: { max_steps: 2, step_interval_ms: 0, ...options },
        });
        await eventually("the jokes", async () => (await api.session(session_id)).status === "stopped");
        return api.session(session_id);
      };
      // 500 at full price, 500 cached, 100 written: 0.5 + 0.05 + 0.2 dollars for each of two steps.
      assert.equal((await run("ada")).cost_usd, 1.5);
      assert.equal((await run("ada", { model: "openai/gpt-4o" })).tokens_used, 2200);
      assert.equal((await run("ben", { model: "openai/nobody-knows-its-price" })).cost_usd, 0);
      await api.create("echo", { agent_id: "idle" });

      const costs = async (query: Record<string, string>) =>
        JSON.parse((await api.get("/api/costs", query)).text) as Costs;
      const byAgent = await costs({ by: "agent" });
      assert.deepEqual(
        byAgent.costs.map(({ key, sessions, tokens_used }) => [key, sessions, tokens_used]),
        [
          ["ada", 2, 4400],
          ["ben", 1, 2200],
        ],
      );
      const byModel = await costs({ by: "model" });
      assert.deepEqual(
        byModel.costs.map(({ key }) => key),
        ["openai/mine", "openai/gpt-4o", "openai/nobody-knows-its-price"],
      );
      assert.equal(byModel.costs[0]?.cost_usd, 1.5);
      assert.ok((byModel.costs[1]?.cost_usd ?? 0) > 0, "the catalog knows its price");
      assert.match(byModel.prices_as_of, /^20\d\d-\d\d-\d\d$/);
      const byDay = await costs({});
      assert.deepEqual(
        byDay.costs.map(({ key }) => key),
        [new Date().toISOString().slice(0, 10)],
      );
      assert.equal(byDay.total.sessions, 3);
      assert.deepEqual((await costs({ since: "2999-01-01" })).costs, []);
      problemOf(await api.get("/api/costs", { by: "moon" }), 400);
      const printed = await everstep(["costs", "--by", "agent", "--url", server.url]);
      assert.match(printed.stdout, /AGENT +SESSIONS +TOKENS +DOLLARS\nada +2 +4400/);
    },
  );

  test("is asked for a file of prices that can be read, or the program does not start", TIMEOUT, async () => {
    const { code, stderr } = await everstep(["serve"], {
      EVERSTEP_PORT: "0",
      EVERSTEP_MODEL: "ollama/x",
      EVERSTEP_PRICES: "/nowhere/prices.json",
    });
    assert.notEqual(code, 0);
    assert.match(stderr, /config_invalid: EVERSTEP_PRICES=/);
  });
});
