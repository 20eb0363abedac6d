import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import type { Step } from "../../src/domain/step.ts";
import { within } from "../within.ts";
import { SHAPES } from "./api.ts";
import { commandFor } from "./command.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { spawnEverstep } from "./spawn-everstep.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const run = commandFor(() => world().server.url);

/** A command that keeps running, and its output so far. */
function running(...args: string[]) {
  const child = spawnEverstep([...args, "--url", world().server.url], {}, world().server.folder);
  const said = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const stream of ["stdout", "stderr"] as const)
    child[stream]?.setEncoding("utf8").on("data", (text: string) => {
      said[stream] += text;
      for (const look of listeners) look();
    });
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const saying = (pattern: RegExp) => {
    const match = Promise.withResolvers<void>();
    const look = () => pattern.test(said.stdout + said.stderr) && match.resolve();
    listeners.add(look);
    look();
    return within(60_000, match.promise, () => `${pattern} was not printed in ${JSON.stringify(said)}`);
  };
  return { said, ended, saying, child };
}

describe("everstep logs", () => {
  test("prints a session's steps, its guidance and what failed", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", {
      params: { to: 3, fail_at: 2, fail_times: 1, delay_ms: 50 },
      options: { retry: { max_attempts: 1, backoff_ms: 0 } },
    });
    await world().control(session_id, "interrupt", { guidance: { hint: "slowly" } });
    await world().status(session_id, "error");
    await world().control(session_id, "resume");
    await world().status(session_id, "done");
    const [all, last, json] = await Promise.all([
      run("logs", session_id),
      run("logs", session_id, "--tail", "2"),
      run("logs", session_id, "--json"),
    ]);
    for (const { code, stderr, stdout } of [all, last, json]) {
      assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
      assert.ok(!stdout.includes("\u001b"), "no colour codes in a pipe");
    }
    const lines = all.stdout.trimEnd().split("\n");
    assert.deepEqual(
      lines.filter((line) => !line.includes("guided")),
      ["#0 0", "#1 1", "#2 Error: told to fail at 2", "#2 2", "#3 3"],
    );
    assert.deepEqual(
      lines.filter((line) => line.includes("guided")).map((line) => line.slice(3)),
      ['guided: {"hint":"slowly"}'],
    );
    assert.deepEqual(last.stdout.replaceAll(/^.*guided.*\n/gm, ""), "#2 Error: told to fail at 2\n#2 2\n#3 3\n");
    const steps = json.stdout
      .trimEnd()
      .split("\n")
      .map((line) => SHAPES.step.parse(JSON.parse(line)));
    assert.deepEqual(steps, await api.steps(session_id));
  });

  test("prints a long history whole", TIMEOUT, async () => {
    const { session_id } = await world().api.create("count", { params: { to: 1200 } });
    await world().status(session_id, "done");
    const { stdout } = await run("logs", session_id);
    assert.deepEqual(
      stdout.trimEnd().split("\n"),
      Array.from({ length: 1201 }, (_, n) => `#${n} ${n}`),
    );
  });

  test("lets nothing that an agent says take over the terminal", TIMEOUT, async () => {
    const text = "\u001b[2J\u001b]0;owned\u0007 safe \u0008\u009b31m\r\n text";
    const { session_id } = await world().api.create("script", { params: { frames: [{ text }] } });
    await world().status(session_id, "done");
    for (const { stdout } of await Promise.all([
      run("logs", session_id),
      run("ps", "--limit", "1"),
      run("search", "safe"),
    ]))
      assert.deepEqual(stdout.match(/(?![\n\t])\p{Cc}/gu) ?? [], [], JSON.stringify(stdout));
  });
});

describe("everstep logs -f", () => {
  test("prints steps as they come and ends with the session", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    const following = running("logs", session_id.slice(0, 24), "-f");
    const tell = async (guidance: string) => world().control(session_id, "interrupt", { guidance });
    await tell("first");
    await following.saying(/#0 first\n/);
    await tell("second");
    await following.saying(/#1 second\n/);
    await world().control(session_id, "destroy");
    assert.deepEqual(await following.ended, [0, null]);
    assert.match(following.said.stderr, /the session is stopped \(destroyed\)\n$/);
    assert.ok(!following.said.stdout.includes("\u001b"));
  });

  test("of a session that ended already prints it and ends, with its error where it has one", TIMEOUT, async () => {
    const { api } = world();
    const done = await api.create("count", { params: { to: 2 } });
    const wrong = await api.create("count", {
      params: { to: 2, fail_at: 1 },
      options: { retry: { max_attempts: 1, backoff_ms: 0 } },
    });
    await world().status(done.session_id, "done");
    await world().status(wrong.session_id, "error");
    const [first, second, json] = await Promise.all([
      run("logs", done.session_id, "-f"),
      run("logs", wrong.session_id, "-f"),
      run("logs", done.session_id, "-f", "--json"),
    ]);
    assert.deepEqual([first.code, first.stdout, first.stderr], [0, "#0 0\n#1 1\n#2 2\n", "the session is done\n"]);
    assert.deepEqual([second.code, second.stdout], [3, "#0 0\n#1 Error: told to fail at 1\n"]);
    assert.match(second.stderr, /^the session is error: .*told to fail at 1\n$/);
    assert.equal(json.stdout.trimEnd().split("\n").length, 3);
  });

  test("goes on after the server was killed and came back, and misses no step", TIMEOUT, async () => {
    const { api, server } = world();
    const session_id = `long ${newId()}`;
    await api.create("count", { session_id, params: { to: 60, delay_ms: 50 } });
    const following = running("logs", session_id, "-f", "--json");
    await following.saying(/"iteration":5,/);
    await server.kill();
    await server.start();
    const [code] = await within(
      60_000,
      following.ended,
      () => `logs -f did not end: ${JSON.stringify(following.said).slice(-2000)}`,
    );
    assert.equal(code, 0);
    const steps = following.said.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Step);
    assert.deepEqual(
      steps.map(({ iteration }) => iteration),
      Array.from({ length: 61 }, (_, n) => n),
    );
  });
});
