import assert from "node:assert/strict";
import { chmod, copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { MonikerFiles } from "../monikers/moniker-files.ts";
import { repetitions } from "../repetitions.ts";
import { REPOSITORY } from "../repository-files.ts";
import { pathOf } from "../server/api.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { NEEDS_PYTHON } from "./python.ts";
import { wholeSteps } from "./whole-steps.ts";

const KILLS = repetitions("EVERSTEP_PROGRAM_KILLS", { few: 2, many: 200 });

/** A server with these programs in its monikers folder. */
async function programWorld(programs: Record<string, string>, environment: Record<string, string> = {}) {
  const files = await MonikerFiles.with({});
  for (const [name, text] of Object.entries(programs)) await writeProgram(files, name, text);
  const server = await ServerProcess.start({ EVERSTEP_MONIKERS: files.folder, ...environment });
  const world = await World.of(server);
  return {
    files,
    server,
    world,
    api: world.api,
    async [Symbol.asyncDispose]() {
      world.close();
      await server.stop();
      await server[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

/** One such server for the tests of a `describe`. */
function sharedPrograms(programs: () => Promise<Record<string, string>>) {
  let here: Awaited<ReturnType<typeof programWorld>> | undefined;
  before(async () => {
    here = await programWorld(await programs());
  });
  after(async () => here?.[Symbol.asyncDispose]());
  return () => here ?? assert.fail("the server is started before the tests run");
}

async function writeProgram(files: MonikerFiles, name: string, text: string): Promise<void> {
  await writeFile(join(files.folder, name), text);
  if (!name.endsWith(".py")) await chmod(join(files.folder, name), 0o755);
}

const shell = (answer: string, description = '{"monikers":[{}]}'): string =>
  `#!/bin/sh\nwhile read -r line; do case $line in '{"describe":true}') echo '${description}' ;; *) ${answer} ;; esac; done\n`;
const frame = (text: string): string =>
  `echo '{"frame":{"step":"0","next_step":"0","state":{},"text":"${text}","done":true}}'`;
const once = { retry: { max_attempts: 1, backoff_ms: 0 } };
/** What a program may do wrong, and the resulting error. */
const ODD = [
  { what: "writes no JSON", answer: "echo hello", code: "remote_misbehaved" },
  {
    what: "writes another line after its frame",
    answer: frame("a").replace(/'$/, "\n{}'"),
    code: "remote_misbehaved",
  },
  {
    what: "answers for another step",
    answer: `echo '{"frame":{"step":"9","next_step":"0","state":{},"done":true}}'`,
    code: "remote_misbehaved",
  },
  { what: "writes without end", answer: "yes", code: "remote_misbehaved" },
  { what: "writes one line without an end", answer: "tr '\\0' x </dev/zero", code: "remote_misbehaved" },
  { what: "ends", answer: "exit 1", code: "remote_gone" },
  { what: "hangs with children of its own", answer: "sleep 1000 & sleep 1000", code: "timeout" },
];
const countPy = () => readFile(join(REPOSITORY, "test/remote/monikers/py_count.py"), "utf8");

describe("a program in the folder of monikers", () => {
  test("has the features of the example in plain shell", TIMEOUT, async () => {
    await using here = await programWorld({ tick: await readFile(join(REPOSITORY, "examples/shell/tick"), "utf8") });
    const { session_id } = await here.api.create("tick");
    await here.world.status(session_id, "done");
    const steps = await here.api.steps(session_id);
    assert.deepEqual(
      steps.map(({ text }) => text),
      ["tick 0", "tick 1", "tick 2", "tick 3"],
    );
    assert.match(steps[0]?.moniker_version ?? "", /^[0-9a-f]{12}$/);
    const page = await readFile(join(REPOSITORY, "docs/other-languages.md"), "utf8");
    const code = /```sh\n(#!.*?)```/s.exec(page)?.[1];
    const example = await readFile(join(REPOSITORY, "examples/shell/tick"), "utf8");
    assert.equal(code, example.replace(/^# .*\n/m, ""), "the page shows it");
    assert.deepEqual(here.server.loggedErrors, []);
  });

  test("without a description is named after its file; files that are not programs are ignored", TIMEOUT, async () => {
    await using here = await programWorld({ greet: shell(frame("hello")), "_shared.py": "raise SystemExit(1)" });
    await writeFile(join(here.files.folder, "notes.md"), "# no program");
    await copyFile(join(REPOSITORY, "clients/python/everstep.py"), join(here.files.folder, "everstep.py"));
    const { failed } = JSON.parse((await here.api.post("/api/monikers/reload")).text) as { failed: unknown[] };
    assert.deepEqual(failed, []);
    const { session_id } = await here.api.create("greet");
    assert.equal((await here.world.status(session_id, "done")).result, "hello");
  });

  test("is restarted after a reload, removed with its file, and reported if it cannot be used", TIMEOUT, async () => {
    await using here = await programWorld({ greet: shell(frame("old")) });
    const { files, api, world } = here;
    const said = async (): Promise<unknown> =>
      (await world.status((await api.create("greet")).session_id, "done")).result;
    type Report = { monikers: { change: string }[]; failed: { moniker: string | null; error: string }[] };
    const reload = async () => JSON.parse((await api.post("/api/monikers/reload")).text) as Report;
    assert.equal(await said(), "old");
    await writeProgram(files, "greet", shell(frame("new")));
    assert.deepEqual(
      (await reload()).monikers.map(({ change }) => change),
      ["changed"],
    );
    assert.equal(await said(), "new");
    await writeProgram(files, "greet", "#!/bin/sh\necho broken >&2\nexit 7\n");
    const [failure] = (await reload()).failed;
    assert.equal(failure?.moniker, "greet");
    assert.match(failure?.error ?? "", /^remote_gone: .*greet ended \(exit code 7\), after writing "broken"/);
    await files.remove("greet");
    const gone = await reload();
    assert.deepEqual([gone.monikers.map(({ change }) => change), gone.failed], [["removed"], []]);
  });
});

describe("a program in the folder of monikers", () => {
  const here = sharedPrograms(async () =>
    Object.fromEntries(
      ODD.map(({ answer }, at) => [
        `odd${at}`,
        shell(`case $line in *'"well":true'*) ${frame("well")} ;; *) ${answer} ;; esac`),
      ]),
    ),
  );

  for (const [at, { what, code }] of ODD.entries())
    test(`that ${what} is blamed and started again`, TIMEOUT, async () => {
      const { api, world, server } = here();
      const options = { ...once, step_timeout_s: code === "timeout" ? 0.5 : 60 };
      const bad = await api.create(`odd${at}`, { options });
      const { last_error } = await world.status(bad.session_id, "error");
      assert.match(last_error ?? "", new RegExp(`^${code}: .*odd${at} `), last_error ?? "");
      const good = await api.create(`odd${at}`, { params: { well: true }, options: { step_timeout_s: 60 } });
      assert.equal((await world.status(good.session_id, "done", "error")).result, "well");
      assert.ok(server.isAlive);
    });
});

describe("a program in Python", NEEDS_PYTHON, () => {
  const shared = sharedPrograms(async () => ({ "py_count.py": await countPy() }));

  test("runs as many steps at once as it may have processes, and others after them", TIMEOUT, async () => {
    await using here = await programWorld({ "py_count.py": await countPy() }, { EVERSTEP_MONIKER_PROCESSES: "3" });
    const { api, world } = here;
    const sessions = await Promise.all(
      Array.from({ length: 12 }, () => api.create("py-count", { params: { to: 9, delay_s: 0.01 } })),
    );
    for (const { session_id } of sessions) {
      const session = await world.status(session_id, "done", "error");
      assert.deepEqual([session.status, session.tokens_used], ["done", 10]);
      assert.deepEqual(
        (await api.steps(session_id)).map(({ iteration }) => iteration),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      );
    }
  });

  test("gets no secret of the server's, only what is named for it", TIMEOUT, async () => {
    const secrets = {
      EVERSTEP_TOKEN: "",
      OPENAI_API_KEY: "sk-1",
      EVERSTEP_REMOTE_SECRET: "c2VjcmV0",
      MY_KEY: "for it",
    };
    await using here = await programWorld(
      { "py_count.py": await countPy() },
      { ...secrets, EVERSTEP_MONIKER_ENV: "MY_KEY, OTHER" },
    );
    const { session_id } = await here.api.create("py-tell");
    await here.world.status(session_id, "done");
    const [step] = await here.api.steps(session_id);
    const { env, key } = (step ?? assert.fail("no step")).data as { env: string[]; key: string };
    assert.ok(env.includes("MY_KEY") && env.includes("PATH"));
    assert.deepEqual(
      env.filter((name) => name in secrets && name !== "MY_KEY"),
      [],
    );
    assert.equal(key, `${session_id}/0`);
  });

  test("that dies in a step is started again, and the step with it", TIMEOUT, async () => {
    const here = shared();
    const { session_id } = await here.api.create("py-die", { options: { retry: { max_attempts: 3, backoff_ms: 10 } } });
    const session = await here.world.status(session_id, "done", "error");
    assert.equal(session.result, "alive", session.last_error ?? "");
    assert.match(here.server.stderr, /ended \(exit code 3\), after writing .*dying words/);
  });

  test("that sleeps is ended when its step is interrupted, and its session goes on", TIMEOUT, async () => {
    const here = shared();
    const { session_id } = await here.api.create("py-sleep");
    const tell = (guidance: string, mode: string) =>
      here.api.post(pathOf("sessions", session_id, "interrupt"), { guidance, mode });
    await tell("sleep", "next");
    await eventually("the step", async () => (await here.api.session(session_id)).step_started_at !== null);
    await tell("wake", "now");
    await eventually("the answer", async () => (await here.api.session(session_id)).result === "awake");
  });

  test(`loses no step when its processes are killed ${KILLS} times under load`, { timeout: 600_000 }, async () => {
    await using here = await programWorld({ "py_count.py": await countPy() }, { EVERSTEP_LOG_LEVEL: "error" });
    const { api } = here;
    const params = { to: 100_000, delay_s: 0.005 };
    const options = { retry: { max_attempts: 100, backoff_ms: 10 } };
    const sessions = await Promise.all(Array.from({ length: 12 }, () => api.create("py-count", { params, options })));
    const iterationOf = async (index: number): Promise<number> =>
      (await api.session(sessions[index % sessions.length]?.session_id ?? "")).iteration;
    for (let kill = 0; kill < KILLS; kill++) {
      const last = await iterationOf(kill);
      await eventually("a step since the last kill", async () => (await iterationOf(kill)) > last);
      const { session_id = "" } = sessions[kill % sessions.length] ?? {};
      const { data } = JSON.parse((await api.get("/api/agent-steps/latest", { session_id })).text) as {
        data: { pid: number };
      };
      try {
        process.kill(data.pid, "SIGKILL");
      } catch {
        // It was already killed during another session's step.
      }
    }
    await Promise.all(sessions.map(({ session_id }) => api.post(pathOf("sessions", session_id, "pause"))));
    const steps = await wholeSteps(api, sessions);
    console.log(`${KILLS} kills, ${steps} steps of ${sessions.length} sessions, none lost`);
  });
});
