import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { conversationSchema } from "../../src/domain/conversation.ts";
import { newId } from "../../src/domain/ids.ts";
import { completionScript } from "../../src/surfaces/cli/commands/completion.ts";
import { clientCommands } from "../../src/surfaces/cli/program.ts";
import { pathOf, SHAPES } from "./api.ts";
import { commandFor, everstep, type Ran, tableRows } from "./command.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { PROGRAM } from "./spawn-everstep.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const run = commandFor(() => world().server.url);
const program = `'${process.execPath}' '${PROGRAM}'`;
const ok = ({ code, stdout, stderr }: Ran): string => {
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, stdout);
  return stdout;
};
const shell = async (script: string): Promise<string> => {
  const environment = { PATH: process.env["PATH"], EVERSTEP_URL: world().server.url };
  const { stdout, stderr } = await promisify(execFile)("bash", ["--norc", "-c", `set -o pipefail; ${script}`], {
    env: environment,
  });
  assert.equal(stderr, "");
  return stdout;
};

test("everstep monikers lists what agents can be given, and tells what one of them takes", TIMEOUT, async () => {
  const [all, one, none] = await Promise.all([run("monikers"), run("monikers", "count"), run("monikers", "cont")]);
  const count = tableRows(ok(all)).find(({ MONIKER }) => MONIKER === "count");
  assert.match(count?.["PARAMS"] ?? "", /^to delay_ms\? /);
  assert.match(ok(one), /^count \(finite\): .*\n\nPARAM .*\nto +integer +required +The last number\.\n/);
  assert.match(one.stdout, /start one with: everstep create count --param to=… --url/);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^no moniker is named cont; `everstep monikers --url \S+` lists them\n$/);
});

test("everstep fork continues from a step with the given differences", TIMEOUT, async () => {
  const { api } = world();
  const parent = await api.create("count", { agent_id: `parent-${newId()}`, params: { to: 3, delay_ms: 1 } });
  await world().status(parent.session_id, "done");
  const args = ["--at", "1", "--param", "to=2", "--option", "max_steps=9", "--json"];
  const made = SHAPES.accepted.parse(JSON.parse(ok(await run("fork", parent.agent_id, ...args))));
  const fork = await world().status(made.session_id, "done");
  assert.deepEqual(
    [fork.parent_session_id, fork.parent_iteration, fork.params, fork.options.max_steps, fork.iteration],
    [parent.session_id, 1, { to: 2, delay_ms: 1 }, 9, 2],
  );
});

test("everstep say speaks in a conversation, and conversations shows it", TIMEOUT, async () => {
  const conversation_id = await world().api.conversation();
  const { session_id } = await world().api.create("echo", { conversation_id, agent_id: "parrot" });
  assert.equal(ok(await run("say", conversation_id, "--user", "ann", "hello,", "you")), "sent to 1 agent\n");
  await world().iteration(session_id, 0);
  const [list, transcript, json] = await Promise.all([
    run("conversations", "--json"),
    run("conversations", conversation_id),
    run("conversations", conversation_id, "--json"),
  ]);
  const { conversations } = JSON.parse(ok(list)) as { conversations: unknown[] };
  assert.ok(conversations.some((row) => conversationSchema.parse(row).conversation_id === conversation_id));
  assert.equal(ok(transcript), "ann  hello, you\nparrot  hello, you\n");
  assert.equal(ok(json).trimEnd().split("\n").length, 2);
});

test("everstep resume lifts a limit with --option, and logs -f takes the agent's name", TIMEOUT, async () => {
  const agent_id = `limited-${newId()}`;
  const { session_id } = await world().api.create("count", { agent_id, params: { to: 3 }, options: { max_steps: 2 } });
  await world().status(session_id, "stopped");
  assert.match((await run("inbox", "--agent", agent_id)).stdout, /everstep resume \S+ --option max_steps=… --url/);
  assert.equal(ok(await run("resume", agent_id, "--option", "max_steps=9")), `resume ${session_id}: ok (delivered)\n`);
  const { code, stdout } = await run("logs", agent_id, "-f");
  assert.deepEqual([code, stdout], [0, "#0 0\n#1 1\n#2 2\n#3 3\n"]);
});

test("everstep open prints where the console shows a session", TIMEOUT, async () => {
  const { session_id } = await world().api.create("echo", { session_id: `o p/en ${newId()}` });
  const url = ok(await run("open", session_id)).trimEnd();
  assert.equal(url, `${world().server.url}/sessions/${encodeURIComponent(session_id)}`);
  assert.equal((await fetch(url)).headers.get("content-type")?.split(";")[0], "text/html");
});

test("a reader that closes the pipe ends a command quietly", TIMEOUT, async () => {
  const { session_id } = await world().api.create("count", { params: { to: 1500, payload_bytes: 200 } });
  await world().status(session_id, "done");
  assert.match(await shell(`${program} logs ${session_id} --json | head -n 1`), /^\{.*\}\n$/);
  assert.equal(await shell(`${program} logs ${session_id} -f | head -n 1`), "#0 0\n");
});

test("a hint uses the command as it was typed", TIMEOUT, async () => {
  const npx = { npm_lifecycle_event: "npx", npm_lifecycle_script: "everstep" };
  const { stderr } = await everstep(["logs", "nobody"], { EVERSTEP_URL: world().server.url, ...npx });
  assert.equal(stderr, "no session or agent is named nobody; `npx everstep ps` lists them\n");
});

test("a summary has what a session costs and when it tries again", TIMEOUT, async () => {
  const { session_id } = await world().api.create("echo");
  const { text } = await world().api.get(`/api/session-summaries?session_id=${session_id}`);
  const { sessions } = JSON.parse(text) as { sessions: Record<string, unknown>[] };
  const session = JSON.parse((await world().api.get(pathOf("sessions", session_id))).text) as Record<string, unknown>;
  for (const field of ["retry_at", "cost_usd"]) assert.deepEqual(sessions[0]?.[field], session[field], field);
});

describe("everstep completion", () => {
  test("completes commands, options and the names that the server knows", TIMEOUT, async () => {
    const agent_id = `completed-${newId()}`;
    await world().api.create("echo", { agent_id });
    const script = join(world().server.folder, "completion.bash");
    await writeFile(script, ok(await everstep(["completion", "bash"])));
    const complete = (...words: string[]) =>
      `COMP_WORDS=(everstep ${words.join(" ")}); COMP_CWORD=${words.length}; _everstep; echo "\${COMPREPLY[*]}"`;
    const printed = await shell(
      [
        `everstep() { ${program} "$@"; }; source '${script}'`,
        complete("conv"),
        complete("fork", "x", "--guid"),
        complete("logs", "completed-"),
        complete("create", "ech"),
      ].join("\n"),
    );
    assert.deepEqual(printed.trimEnd().split("\n"), ["conversations", "--guidance", agent_id, "echo"]);
  });

  test("has scripts for zsh and fish, and for no other shell", () => {
    const commands = clientCommands();
    assert.match(completionScript(commands, "zsh"), /bashcompinit[^]*complete .* everstep$/);
    assert.match(completionScript(commands, "fish"), /__fish_seen_subcommand_from logs" -l follow\n/);
    assert.throws(() => completionScript(commands, "tcsh"), /use bash, zsh or fish/);
  });
});

test("every command shows an example in its help", () => {
  for (const command of clientCommands().commands) {
    if (command.name().startsWith("__")) continue;
    let help = "";
    command.configureOutput({
      writeOut: (text) => {
        help += text;
      },
    });
    command.outputHelp();
    assert.match(help, new RegExp(`\\nExample:\\n  everstep ${command.name()}\\b`), command.name());
  }
});
