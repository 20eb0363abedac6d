import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { FrameOut } from "../../src/domain/step-frame.ts";
import { schedule } from "../../src/monikers/builtin/schedule.ts";
import type { StepContext } from "../../src/monikers/moniker.ts";

const START = { agent_id: "reporter", moniker: "count", params: { to: 1 } };

/** A schedule whose steps run at the times the test sets. */
class Steps {
  readonly #params: unknown;
  readonly #session_id: string;
  #state: JsonObject = {};
  #iteration = 0;

  constructor(params: JsonObject, session_id = "nightly") {
    this.#params = schedule.params.parse({ start: START, ...params });
    this.#session_id = session_id;
  }

  async at(time: string, ...guidance: JsonValue[]): Promise<FrameOut> {
    mock.timers.enable({ apis: ["Date"], now: new Date(time) });
    try {
      const ids = { agent_id: "a", session_id: this.#session_id, conversation_id: null, iteration: this.#iteration++ };
      const context = { params: this.#params, ids } as unknown as StepContext;
      const frame = { step: "run", state: this.#state, ...(guidance.length > 0 && { guidance }) };
      const out = await schedule.step(frame, context);
      this.#state = JSON.parse(JSON.stringify(out.state)) as JsonObject;
      return out;
    } finally {
      mock.timers.reset();
    }
  }

  /** A fork of it. */
  fork(session_id: string): Steps {
    const fork = new Steps(this.#params as JsonObject, session_id);
    fork.#state = this.#state;
    return fork;
  }
}

const started = ({ actions }: FrameOut) => actions?.map(({ session_id }) => session_id) ?? [];
const ended = (session_id: string, more: JsonObject = {}) => ({
  child: { session_id, status: "done", error: null, ...more },
});

describe("the schedule", () => {
  test("waits until the next time of its zone, and starts a session then", async () => {
    const steps = new Steps({ cron: "0 9 * * 1-5", timezone: "Europe/Berlin" });
    const first = await steps.at("2026-11-13T12:00:00.500Z");
    assert.deepEqual(first.wait, { until: "2026-11-16T08:00:00.000Z" }, "Friday noon: Monday at nine, in winter");
    assert.deepEqual([started(first), first.done], [[], false]);
    assert.match(first.text ?? "", /^Next run: 2026-11-16 09:00 \(Europe\/Berlin\)\.$/);
    const run = await steps.at("2026-11-16T08:00:00.020Z");
    assert.deepEqual(run.actions, [{ action_type: "agent_create", session_id: "nightly.1.0", ...START }]);
    assert.deepEqual(run.wait, { until: "2026-11-17T08:00:00.000Z" });
    assert.match(run.text ?? "", /^Started nightly\.1\.0\.\nNext run: 2026-11-17 09:00/);
  });

  test("is not started early by what it is told, nor twice by a clock that goes back", async () => {
    const steps = new Steps({ cron: "0 9 * * *" });
    await steps.at("2026-11-16T08:00:00Z");
    const asked = await steps.at("2026-11-16T08:30:00Z", "hello?");
    assert.deepEqual([started(asked), asked.wait], [[], { until: "2026-11-16T09:00:00.000Z" }]);
    assert.match(asked.text ?? "", /understands "skip"/);
    assert.deepEqual(started(await steps.at("2026-11-16T09:00:00Z")), ["nightly.2.0"]);
    const back = await steps.at("2026-11-16T08:59:00Z", ended("nightly.2.0"));
    assert.deepEqual([started(back), back.wait], [[], { until: "2026-11-17T09:00:00.000Z" }]);
  });

  test("makes up for missed runs by one, and says so", async () => {
    const steps = new Steps({ cron: "0 9 * * *" });
    await steps.at("2026-11-16T08:00:00Z");
    const late = await steps.at("2026-11-19T12:00:00Z");
    assert.deepEqual(started(late), ["nightly.1.0"]);
    assert.match(late.text ?? "", /^4 runs were due since 2026-11-16 09:00 \(UTC\); this one replaces them\./);
    assert.deepEqual(late.wait, { until: "2026-11-20T09:00:00.000Z" });
    const one = await steps.at("2026-11-20T10:00:00Z", ended("nightly.1.0"));
    assert.match(one.text ?? "", /The run of 2026-11-20 09:00 \(UTC\) was missed; it starts now\./);
    assert.deepEqual(started(one), ["nightly.2.0"]);
  });

  test("leaves a run out while the one before goes on, unless they may overlap", async () => {
    const steps = new Steps({ cron: "0 * * * *" });
    await steps.at("2026-11-16T08:30:00Z");
    await steps.at("2026-11-16T09:00:00Z");
    const busy = await steps.at("2026-11-16T10:00:00Z");
    assert.deepEqual([started(busy), busy.wait], [[], { until: "2026-11-16T11:00:00.000Z" }]);
    assert.match(busy.text ?? "", /^The run of 2026-11-16 10:00 \(UTC\) is skipped: nightly\.1\.0 is still running\./);
    const free = await steps.at("2026-11-16T10:30:00Z", ended("nightly.1.0", { status: "error", error: "no luck" }));
    assert.match(free.text ?? "", /^Run nightly\.1\.0 ended: error \(no luck\)\./);
    assert.deepEqual(started(await steps.at("2026-11-16T11:00:00Z")), ["nightly.4.0"]);
    const overlapping = new Steps({ cron: "0 * * * *", overlap: "allow" });
    await overlapping.at("2026-11-16T08:30:00Z");
    await overlapping.at("2026-11-16T09:00:00Z");
    assert.deepEqual(started(await overlapping.at("2026-11-16T10:00:00Z")), ["nightly.2.0"]);
  });

  const SKIPS: [JsonValue, string][] = [
    ["skip", "2026-11-17T09:00:00.000Z"],
    ["Skip next.", "2026-11-17T09:00:00.000Z"],
    ["skip the next run", "2026-11-17T09:00:00.000Z"],
    [{ text: "skip today", user_id: "ann" }, "2026-11-17T09:00:00.000Z"],
    ["skip 3", "2026-11-19T09:00:00.000Z"],
    [{ skip: 2 }, "2026-11-18T09:00:00.000Z"],
    ["skip tomorrow", "2026-11-16T09:00:00.000Z"],
    ["skip yesterday", "2026-11-16T09:00:00.000Z"],
    [{ skip: -1 }, "2026-11-16T09:00:00.000Z"],
    [{ skip: "all" }, "2026-11-16T09:00:00.000Z"],
  ];
  for (const [said, next] of SKIPS)
    test(`told ${JSON.stringify(said)} runs next at ${next}`, async () => {
      const steps = new Steps({ cron: "0 9 * * *" });
      await steps.at("2026-11-16T08:00:00Z");
      assert.deepEqual((await steps.at("2026-11-16T08:01:00Z", said)).wait, { until: next });
    });

  test("that skips tomorrow runs today and the day after, by the days of its zone", async () => {
    const steps = new Steps({ cron: "0 9,21 * * *", timezone: "Asia/Tokyo" });
    await steps.at("2026-11-16T10:00:00Z"); // 19:00 on the 16th in Tokyo.
    const answer = await steps.at("2026-11-16T10:01:00Z", "skip tomorrow");
    assert.match(answer.text ?? "", /^Runs on 2026-11-17 are skipped\./);
    assert.deepEqual(answer.wait, { until: "2026-11-16T12:00:00.000Z" });
    const run = await steps.at("2026-11-16T12:00:00Z");
    assert.deepEqual([started(run), run.wait], [["nightly.2.0"], { until: "2026-11-18T00:00:00.000Z" }]);
  });

  test("forked is not held up by what its parent started", async () => {
    const steps = new Steps({ cron: "0 * * * *" });
    await steps.at("2026-11-16T08:30:00Z");
    await steps.at("2026-11-16T09:00:00Z");
    assert.deepEqual(started(await steps.fork("copy").at("2026-11-16T10:00:00Z")), ["copy.0.0"]);
  });

  test("ends when there is no further time", async () => {
    const year = new Date().getUTCFullYear() + 1;
    const steps = new Steps({ cron: `0 0 9 1 1 * ${year}` });
    assert.deepEqual((await steps.at(`${year - 1}-12-01T00:00:00Z`)).wait, { until: `${year}-01-01T09:00:00.000Z` });
    const last = await steps.at(`${year}-01-01T09:00:00Z`);
    assert.deepEqual([started(last).length, last.done, last.wait], [1, true, undefined]);
  });

  for (const [path, params] of [
    ["cron", { cron: "every day" }],
    ["cron", { cron: "0 25 * * *" }],
    ["cron", { cron: "0 0 30 2 *" }],
    ["timezone", { cron: "0 9 * * *", timezone: "Nowhere/Land" }],
    ["start", { cron: "0 9 * * *", start: undefined }],
    ["overlap", { cron: "0 9 * * *", overlap: "maybe" }],
  ] as const)
    test(`refuses ${JSON.stringify(params)}`, () => {
      const { error } = schedule.params.safeParse({ start: START, ...params });
      assert.deepEqual(
        error?.issues.map((issue) => issue.path.join(".")),
        [path],
      );
    });
});
