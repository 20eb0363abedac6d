import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { Throughput } from "../../src/surfaces/http/throughput.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api, read } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const systemShape = z.object({ samples: z.array(z.object({ at: z.string(), steps: z.int() })) });
const step = (status: "ok" | "error", latency_ms: number) => ({ status, latency_ms, tokens_used: 3 });

describe("throughput", () => {
  test("counts the steps, failures and tokens of each five seconds, and forgets after half an hour", (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 1) });
    const throughput = new Throughput();
    for (const latency of [10, 20]) throughput.stepCommitted(step("ok", latency));
    throughput.stepCommitted(step("error", 60));
    assert.deepEqual(throughput.samples(), [], "what is under way is not told yet, and before nothing is known");
    t.mock.timers.tick(5000);
    const at = "2026-01-01T00:00:00.000Z";
    assert.deepEqual(throughput.samples().at(-1), { at, steps: 2, errors: 1, tokens: 9, latency_ms: 30 });
    t.mock.timers.tick(30 * 60_000);
    throughput.stepCommitted(step("ok", 1));
    const samples = throughput.samples();
    assert.equal(samples.length, 360);
    assert.ok(samples.every(({ steps }) => steps === 0));
  });

  test("after a restart begins where all steps are known, however many there are", async (t) => {
    const now = Date.UTC(2026, 0, 1, 12);
    t.mock.timers.enable({ apis: ["Date"], now });
    const since = (ms: number) => new Date(now - ms).toISOString();
    // One session took a step every 50 ms in the last half hour, another one a step a minute.
    const all = new Map([
      ["busy", Array.from({ length: 36_000 }, (_, at) => (36_000 - at) * 50)],
      ["calm", Array.from({ length: 30 }, (_, at) => (30 - at) * 60_000)],
    ]);
    const throughput = new Throughput();
    await throughput.restore({
      summarizeSessions: async () => ({
        sessions: [...all].map(([session_id, ages]) => ({
          session_id,
          iteration: ages.length - 1,
          updated_at: since(ages.at(-1) ?? 0),
        })),
      }),
      listSteps: async ({ session_id = "", min_iteration = 0, max_iteration = 0 }) =>
        (all.get(session_id) ?? []).slice(min_iteration, max_iteration + 1).map((age, at) => ({
          ...step("ok", 1),
          session_id,
          iteration: min_iteration + at,
          created_at: since(age),
        })),
    } as unknown as Parameters<Throughput["restore"]>[0]);
    const samples = throughput.samples();
    // 20,000 steps of 50 ms are a thousand seconds, of which the first bucket is known in part.
    assert.equal(samples.length, 199);
    assert.ok(samples.every(({ steps }) => steps === 100 || steps === 101));
    assert.equal(samples.filter(({ steps }) => steps === 101).length, 16);
  });

  test("survives a restart, and says nothing of the time before the first start", TIMEOUT, async () => {
    await using folder = await scratchFolder();
    const begun = Date.now();
    const samples = async (api: Api) => read(await api.get("/api/system"), 200, systemShape).samples;
    {
      await using server = await ServerProcess.start({ EVERSTEP_STORE: `lancedb:${folder.path}/data` });
      const api = new Api(server.url);
      const { session_id } = await api.create("count", { params: { to: 700 } });
      await eventually("the count", async () => (await api.session(session_id)).status === "done");
    }
    await using successor = await ServerProcess.start({ EVERSTEP_STORE: `lancedb:${folder.path}/data` });
    const api = new Api(successor.url);
    const buckets = await eventually("the steps of before", async () => {
      const rows = await samples(api);
      return rows.reduce((sum, { steps }) => sum + steps, 0) >= 701 && rows;
    });
    assert.equal(
      buckets.reduce((sum, { steps }) => sum + steps, 0),
      701,
    );
    assert.ok(Date.parse(buckets[0]?.at ?? "") >= begun - 5000, "nothing is told of the time before");
  });
});
