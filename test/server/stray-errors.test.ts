import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { REPOSITORY } from "../repository-files.ts";
import { Api } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const MONIKERS = { EVERSTEP_MONIKERS: join(REPOSITORY, "test/server/faults") };
const faulty = (fault: string) => ({
  ...MONIKERS,
  FAULT: fault,
  NODE_OPTIONS: `--import ${join(REPOSITORY, "test/server/fault-at-signal.ts")}`,
});

type FatalLine = {
  origin: string;
  err: { message: string };
  running_steps: { session_id: string; iteration: number; moniker: string }[];
};

describe("an error that nobody caught", () => {
  for (const [fault, origin] of [
    ["exception", "uncaughtException"],
    ["rejection", "unhandledRejection"],
  ] as const)
    test(`(${origin}) is logged with what ran, and the process stops in order with 1`, TIMEOUT, async () => {
      await using server = await ServerProcess.start(faulty(fault));
      const api = new Api(server.url);
      const { session_id: slow } = await api.create("count", { params: { to: 1000, delay_ms: 3000 } });
      const { session_id } = await api.create("count", { params: { to: 1_000_000, delay_ms: 5 } });
      await eventually("steps", async () => (await api.session(session_id)).iteration > 5);
      process.kill(server.pid, "SIGUSR2");
      assert.deepEqual(await server.ended(), { code: 1, signal: null });
      const fatal = server.loggedErrors.filter((line) => line.includes('"level":60'));
      assert.equal(fatal.length, 1, server.stderr);
      const line = JSON.parse(fatal[0] ?? "") as FatalLine;
      assert.deepEqual([line.origin, line.err.message], [origin, "a defect"]);
      const runningStep = line.running_steps.find((step) => step.session_id === slow);
      assert.deepEqual(runningStep, { session_id: slow, iteration: 0, moniker: "count" }, "what ran is told");
      await server.start();
      assert.match(server.stdout, /, 2 sessions resumed\)\n/);
    });

  test("and comes from a connection is logged and ends nothing", TIMEOUT, async () => {
    await using server = await ServerProcess.start(faulty("reset"));
    process.kill(server.pid, "SIGUSR2");
    await eventually("the line in the log", async () => server.stderr.includes("ECONNRESET"));
    assert.equal((await new Api(server.url).get("/health")).status, 200);
    assert.equal((await server.stop()).code, 0);
  });

  const strays: JsonObject[] = [
    { kind: "rejection" },
    { kind: "exception" },
    { kind: "rejection", waits: true },
    { kind: "timer", waits: true },
  ];
  describe("and comes from a step", () => {
    let server: ServerProcess;
    before(async () => {
      server = await ServerProcess.start(MONIKERS);
    });
    after(async () => {
      const { code } = await server.stop();
      await server[Symbol.asyncDispose]();
      assert.equal(code, 0);
    });

    for (const params of strays)
      test(`ends that step: ${JSON.stringify(params)}`, TIMEOUT, async () => {
        const api = new Api(server.url);
        const bystander = await api.create("count", { params: { to: 1_000_000, delay_ms: 5 } });
        const { session_id } = await api.create("stray", { params, options: { retry: { max_attempts: 1 } } });
        await eventually("the error", async () => (await api.session(session_id)).status === "error");
        const { last_error } = await api.session(session_id);
        assert.match(last_error ?? "", /^stray_error: .*left behind\n\s+at .*stray\.ts/);
        const { iteration } = await api.session(bystander.session_id);
        await eventually("the others", async () => (await api.session(bystander.session_id)).iteration > iteration);
      });
  });

  test("and comes from a step that is over is logged with its session, and ends nothing", TIMEOUT, async () => {
    await using server = await ServerProcess.start(MONIKERS);
    const api = new Api(server.url);
    const { session_id } = await api.create("stray", { params: { kind: "timer" } });
    await eventually("the line in the log", async () => server.stderr.includes("left behind"));
    assert.ok(server.stderr.includes(session_id));
    assert.equal((await server.stop()).code, 0);
  });

  test(
    "and comes from a moniker's file outside any step is logged with the file, and ends nothing",
    TIMEOUT,
    async () => {
      await using server = await ServerProcess.start(MONIKERS);
      process.kill(server.pid, "SIGWINCH");
      await eventually("the line in the log", async () => server.stderr.includes("left behind by the file"));
      assert.match(server.stderr, /"file":"[^"]*faults\/fault\.ts"/);
      assert.equal((await new Api(server.url).get("/health")).status, 200);
      assert.equal((await server.stop()).code, 0);
    },
  );

  test(
    "and is no error but a text, from what a file started when it was loaded, is logged with the file too",
    TIMEOUT,
    async () => {
      const head = `setTimeout(() => { throw "only a text"; }, 10);\nvoid Promise.reject("another text");`;
      await using files = await MonikerFiles.with({ "hasty.ts": monikerFile("hasty", "1", { head }) });
      await using server = await ServerProcess.start({ EVERSTEP_MONIKERS: files.folder });
      await eventually(
        "both lines",
        async () => /only a text/.test(server.stderr) && /another text/.test(server.stderr),
      );
      assert.equal(server.stderr.match(/"file":"[^"]*hasty\.ts"/g)?.length, 2);
      assert.equal((await new Api(server.url).get("/health")).status, 200);
      assert.equal((await server.stop()).code, 0);
    },
  );
});
