import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { actionSchema } from "../../src/domain/action.ts";
import { newId } from "../../src/domain/ids.ts";
import { listOf, SHAPES } from "./api.ts";
import { commandFor, everstep, type Ran, tableRows } from "./command.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const run = commandFor(() => world().server.url);
const fresh = (name: string): string => `${name}-${newId()}`;

const ok = ({ code, stdout, stderr }: Ran): string => {
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, stdout);
  // biome-ignore lint: a pipe must not get colours
  assert.ok(!stdout.includes("\u001b"), "no colour codes in a pipe");
  return stdout;
};
const failed = ({ code, stdout, stderr }: Ran, expected: number): string => {
  assert.equal(code, expected, stdout + stderr);
  assert.ok(!`${stdout}${stderr}`.includes("    at "), "a person is not shown a stack");
  assert.ok(!`${stdout}${stderr}`.includes("\u001b"), "no colour codes in a pipe");
  return stderr;
};

describe("everstep create", () => {
  test("starts a session, says its name and how to watch it", TIMEOUT, async () => {
    const stdout = ok(await run("create", "count", "--agent", "cli", "--param", "to=2", "--option", "max_steps=2"));
    const [, session_id = "", hint] =
      /^started session (\S+) of agent cli\nwatch it with: (.*)\n$/.exec(stdout) ?? assert.fail(stdout);
    assert.equal(hint, `everstep logs ${session_id} -f --url ${world().server.url}`, "it can be typed as it is shown");
    const session = await world().status(session_id, "stopped", "done");
    assert.deepEqual([session.params, session.options.max_steps, session.stop_reason], [{ to: 2 }, 2, "max_steps"]);
  });

  test(
    "prints JSON for programs; the agent is named after the moniker; what is not JSON is text",
    TIMEOUT,
    async () => {
      const session_id = fresh("mine");
      const args = [
        "create",
        "joke",
        "--session",
        session_id,
        "--param",
        "subject=tea = hot",
        "--option",
        "max_steps=1",
        "--json",
      ];
      const [first, second] = [ok(await run(...args)), ok(await run(...args))];
      const accepted = SHAPES.accepted.parse(JSON.parse(first));
      assert.deepEqual([accepted.agent_id, accepted.session_id], ["joke", session_id]);
      assert.equal(second, first, "the same call again does nothing twice");
      assert.deepEqual((await world().api.session(session_id)).params, { subject: "tea = hot" });
    },
  );

  test("speaks in a conversation", TIMEOUT, async () => {
    const conversation_id = await world().api.conversation();
    const made = JSON.parse(ok(await run("create", "echo", "--conversation", conversation_id, "--json"))) as {
      session_id: string;
    };
    assert.equal((await world().api.session(made.session_id)).conversation_id, conversation_id);
  });

  test("ends with 1 and the server's reason where the server refuses", TIMEOUT, async () => {
    assert.match(failed(await run("create", "nonsense"), 1), /^moniker: no moniker is named "nonsense".*\n$/);
    assert.match(failed(await run("create", "count"), 1), /params\.to/);
    const { session_id } = await world().api.create("echo", { agent_id: "owner" });
    assert.match(
      failed(await run("create", "echo", "--agent", "thief", "--session", session_id), 1),
      /belongs to another agent/,
    );
  });

  test("ends with 2 where it is called wrongly", TIMEOUT, async () => {
    const calls = await Promise.all([
      run("create", "count", "--param", "to"),
      run("create", "count", "--param", "=5"),
      run("create"),
    ]);
    const [noValue = "", noKey = "", noMoniker = ""] = calls.map((call) => failed(call, 2));
    assert.match(noValue, /^to is not of the form key=value\n$/);
    assert.match(noKey, /is not of the form key=value/);
    assert.match(noMoniker, /missing required argument 'moniker'/);
  });
});

describe("everstep ps", () => {
  test("lists sessions in a table, those that live first, by status and agent", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("lister");
    const done = await api.create("count", { agent_id, params: { to: 1 } });
    await world().status(done.session_id, "done");
    const waiting = await api.create("echo", { agent_id });
    const latest = await api.create("count", { agent_id, params: { to: 1 } });
    await world().status(latest.session_id, "done");
    const rows = tableRows(ok(await run("ps", "--agent", agent_id)));
    assert.deepEqual(
      rows.map(({ SESSION, AGENT, MONIKER, STATUS, STEPS, LAST }) => [SESSION, AGENT, MONIKER, STATUS, STEPS, LAST]),
      [
        [waiting.session_id, agent_id, "echo", "waiting", "0", ""],
        [latest.session_id, agent_id, "count", "done", "2", "1"],
        [done.session_id, agent_id, "count", "done", "2", "1"],
      ],
    );
    assert.ok(rows.every(({ AGE }) => /^\d+[smhd]$/.test(AGE ?? "")));
    const [byStatus, limited, json] = await Promise.all([
      run("ps", "--agent", agent_id, "--status", "done"),
      run("ps", "--agent", agent_id, "--limit", "1"),
      run("ps", "--agent", agent_id, "--json"),
    ]);
    assert.deepEqual(
      tableRows(ok(byStatus)).map(({ SESSION }) => SESSION),
      [latest.session_id, done.session_id],
    );
    assert.deepEqual(
      tableRows(limited.stdout).map(({ SESSION }) => SESSION),
      [waiting.session_id],
    );
    assert.equal(
      limited.stderr,
      `1 of 3; \`everstep ps --agent ${agent_id} --limit 3 --url ${world().server.url}\` lists more\n`,
    );
    assert.equal(listOf("sessions", SHAPES.session).parse(JSON.parse(ok(json)))["sessions"]?.length, 3);
  });

  test("says what to do where there is nothing, and what is wrong with a wrong call", TIMEOUT, async () => {
    const [nothing, badStatus, badLimit] = await Promise.all([
      run("ps", "--agent", "nobody"),
      run("ps", "--status", "dancing"),
      run("ps", "--limit", "many"),
    ]);
    assert.match(ok(nothing), /^no such sessions; start one with: everstep create joke --param subject=tea --url /);
    assert.match(failed(badStatus, 1), /status/);
    assert.match(failed(badLimit, 2), /whole number/);
  });
});

describe("everstep pause, resume, interrupt and destroy", () => {
  test("report their outcome, and end with 1 if the session refuses", TIMEOUT, async () => {
    const { session_id } = await world().api.create("echo");
    assert.equal(ok(await run("pause", session_id, "--reason", "lunch")), `pause ${session_id}: ok (delivered)\n`);
    assert.equal((await world().api.session(session_id)).status, "paused");
    const again = await run("pause", session_id);
    assert.match(failed(again, 1), /^pause was rejected: the session is already paused\n$/);
    const resumed = actionSchema.strict().parse(JSON.parse(ok(await run("resume", session_id, "--json"))));
    assert.deepEqual([resumed.action_type, resumed.outcome], ["agent_resume", "ok"]);
    assert.match(
      ok(await run("interrupt", session_id, "hello, you")),
      /^interrupt \S+: ok \((delivered|consumed)\)\n$/,
    );
    assert.equal((await world().iteration(session_id, 0)).result, "hello, you");
    const now = actionSchema.parse(JSON.parse(ok(await run("interrupt", session_id, "at once", "--now", "--json"))));
    assert.deepEqual(now.payload, { guidance: "at once", mode: "now" });
    assert.match(ok(await run("destroy", session_id)), /: ok \(delivered\)\n$/);
    await world().status(session_id, "stopped");
    const late = await run("interrupt", session_id, "too late", "--json");
    assert.match(failed(late, 1), /interrupt was rejected: the session is stopped/);
    assert.equal(actionSchema.parse(JSON.parse(late.stdout)).receipt, "bounced");
  });

  test("take the beginning of a session's id where it is the only one", TIMEOUT, async () => {
    const prefix = fresh("p");
    await world().api.create("echo", { session_id: `${prefix}-one` });
    await world().api.create("echo", { session_id: `${prefix}-two` });
    const [unique, ambiguous, unknown] = await Promise.all([
      run("pause", `${prefix}-o`),
      run("pause", prefix),
      run("pause", `${prefix}-x`),
    ]);
    assert.equal(ok(unique), `pause ${prefix}-one: ok (delivered)\n`);
    const message = failed(ambiguous, 1);
    assert.match(message, /^2 sessions begin with/);
    for (const name of ["one", "two"]) assert.ok(message.includes(`${prefix}-${name}`));
    assert.match(failed(unknown, 1), /^no session or agent is named .*everstep ps/);
    await world().api.create("echo", { session_id: prefix });
    assert.match(ok(await run("pause", prefix)), /ok/, "a whole id is not ambiguous");
  });
});

describe("everstep search", () => {
  test("finds words and prints where they were said", TIMEOUT, async () => {
    const word = `w${newId().toLowerCase()}`;
    const { session_id, agent_id } = await world().api.create("script", {
      params: { frames: [{ text: `first\n${word}` }, { text: word }] },
    });
    await world().status(session_id, "done");
    const [table, json, limited, nothing] = await Promise.all([
      run("search", word.toUpperCase()),
      run("search", word, "--json", "--session", session_id),
      run("search", word, "--limit", "1", "--agent", agent_id),
      run("search", "nothingofthekind"),
    ]);
    const rows = tableRows(ok(table));
    assert.deepEqual(rows.map(({ KIND, WHERE }) => `${KIND} ${WHERE}`).sort(), [
      `step ${session_id}#0`,
      `step ${session_id}#1`,
    ]);
    assert.ok(rows.every(({ SCORE, TEXT }) => Number(SCORE) > 0 && TEXT?.includes(word)));
    assert.equal(listOf("hits", SHAPES.hit).parse(JSON.parse(ok(json)))["hits"]?.length, 2);
    assert.equal(tableRows(ok(limited)).length, 1);
    assert.equal(ok(nothing), "nothing found\n");
  });
});

describe("a client command", () => {
  test("says so where no server answers, and finds one by EVERSTEP_URL", TIMEOUT, async () => {
    const [nobody, byVariable] = await Promise.all([
      everstep(["ps", "--url", "http://127.0.0.1:9"]),
      everstep(["ps", "--agent", "nobody"], { EVERSTEP_URL: world().server.url }),
    ]);
    assert.match(
      failed(nobody, 1),
      /^no server answers at http:\/\/127\.0\.0\.1:9; start it with `everstep serve`.*\n$/,
    );
    ok(byVariable);
  });

  test("says in one line that what answers is not an Everstep it knows", TIMEOUT, async () => {
    for (const [body, where] of [
      ["<html>", "it"],
      ['{"sessions":[{"session_id":7}],"total":1,"counts":{}}', "sessions.0.agent_id"],
    ] as const) {
      const stranger = createServer((_, response) => void response.end(body)).listen(0, "127.0.0.1");
      await once(stranger, "listening");
      const ran = await everstep(["ps", "--url", `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`]);
      stranger.close();
      assert.match(
        failed(ran, 1),
        new RegExp(
          `^the answer of http://127\\.0\\.0\\.1:\\d+ to /api/session-summaries is not understood \\(${where}: .*\\n$`,
        ),
      );
    }
  });
});
