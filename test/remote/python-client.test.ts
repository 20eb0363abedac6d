import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { MonikerFiles } from "../monikers/moniker-files.ts";
import { repetitions } from "../repetitions.ts";
import { REPOSITORY } from "../repository-files.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { NEEDS_PYTHON, PYTHON_CLIENT, PythonWorker } from "./python.ts";
import { wholeSteps } from "./whole-steps.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, long enough").toString("base64")}`;
const COUNT = join(REPOSITORY, "test/remote/monikers/py_count.py");
/** How many times the worker is killed under load. */
const KILLS = repetitions("EVERSTEP_REMOTE_KILLS", { few: 2, many: 200 });

describe("the client for Python", NEEDS_PYTHON, () => {
  test("passes its own tests", TIMEOUT, () => {
    const env = { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1" };
    const { status, stderr } = spawnSync("python3", ["-m", "unittest", "discover", "-s", PYTHON_CLIENT], { env });
    assert.equal(status, 0, stderr.toString());
  });

  test("runs the code of its page", TIMEOUT, async () => {
    const page = await readFile(join(REPOSITORY, "docs/other-languages.md"), "utf8");
    const code = /```python\n(.*?)```/s.exec(page)?.[1] ?? assert.fail("the page has no code");
    await using files = await MonikerFiles.with({ "count.py": code });
    const context = { params: { to: 0 }, ids: { session_id: "s", iteration: 0 } };
    const request = { moniker: "count", frame: { step: "0", state: {} }, context };
    const env = { PATH: process.env["PATH"], PYTHONPATH: PYTHON_CLIENT, EVERSTEP_STDIO: "1" };
    const input = `{"describe":true}\n${JSON.stringify(request)}\n`;
    const { stdout, stderr } = spawnSync("python3", [join(files.folder, "count.py")], { env, input });
    const lines = stdout
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      lines.map((line) => Object.keys(line)[0]),
      ["monikers", "delta", "frame"],
      stderr.toString(),
    );
    assert.partialDeepStrictEqual(lines[2], { frame: { text: "0", done: true } });
  });

  test("runs the example on requests that it verifies", TIMEOUT, async () => {
    const example = join(REPOSITORY, "examples/python/primes.py");
    await using worker = await PythonWorker.start(example, { EVERSTEP_REMOTE_SECRET: SECRET });
    await using server = await ServerProcess.start({
      EVERSTEP_REMOTE_MONIKERS: worker.url,
      EVERSTEP_REMOTE_SECRET: SECRET,
    });
    const world = await World.of(server);
    const { session_id } = await world.api.create("primes", { params: { count: 4 } });
    await world.status(session_id, "done");
    assert.deepEqual(
      (await world.api.steps(session_id)).map(({ text }) => text),
      ["2", "3", "5", "7"],
    );
    world.close();
  });

  test("refuses a server that does not know the secret, which says so", TIMEOUT, async () => {
    await using worker = await PythonWorker.start(COUNT, { EVERSTEP_REMOTE_SECRET: SECRET });
    await using server = await ServerProcess.start({ EVERSTEP_REMOTE_MONIKERS: worker.url });
    const world = await World.of(server);
    const { session_id } = await world.api.create("py-count", { params: { to: 4 } });
    const { last_error } = await world.status(session_id, "error");
    assert.match(last_error ?? "", /^remote_misbehaved: .*refuses the request \(401\).*EVERSTEP_REMOTE_SECRET/);
    world.close();
  });

  test(`loses no step when its worker is killed ${KILLS} times under load`, { timeout: 900_000 }, async () => {
    await using worker = await PythonWorker.start(COUNT, { EVERSTEP_REMOTE_SECRET: SECRET });
    await using server = await ServerProcess.start({
      EVERSTEP_REMOTE_MONIKERS: worker.url,
      EVERSTEP_REMOTE_SECRET: SECRET,
      EVERSTEP_LOG_LEVEL: "error",
    });
    const { api, ...world } = await World.of(server).then((opened) => ({
      api: opened.api,
      close: () => opened.close(),
    }));
    const last = 100_000;
    const options = { retry: { max_attempts: 100, backoff_ms: 10 } };
    const create = () => api.create("py-count", { params: { to: last, delay_s: 0.005 }, options });
    const sessions = await Promise.all(Array.from({ length: 20 }, create));
    const iterationsOf = () =>
      Promise.all(sessions.map(async ({ session_id }) => (await api.session(session_id)).iteration));
    for (let kill = 0; kill < KILLS; kill++) {
      const before = await iterationsOf();
      await eventually("steps of every session since the last kill", async () =>
        (await iterationsOf()).every((iteration, index) => iteration > (before[index] ?? 0)),
      );
      await worker.kill();
      await worker.start();
    }
    await Promise.all(sessions.map(({ session_id }) => api.post(`/api/sessions/${session_id}/pause`)));
    const steps = await wholeSteps(api, sessions);
    console.log(`${KILLS} kills, ${steps} steps of ${sessions.length} sessions, none lost`);
    world.close();
  });
});
