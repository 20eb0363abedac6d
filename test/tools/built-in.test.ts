import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { GuidanceLimit } from "../../src/actions/guidance-limit.ts";
import { newToolRegistry } from "../../src/main/tools.ts";
import type { StepProgress } from "../../src/monikers/moniker.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import { sharedWorld, TIMEOUT, type World } from "../runtime/runtime-fixture.ts";
import { type CallOptions, errorOf, resultOf, textOf, toolsOf } from "./calls.ts";

const world = sharedWorld(embeddedHome);

function tools(options: CallOptions = {}) {
  const { store, catalog, workspace } = world();
  return toolsOf(newToolRegistry({ store, catalog, workspace, limit: new GuidanceLimit(store) }), options);
}

const inWorkspace = (path: string): string => join(world().workspace, path);

describe("files", TIMEOUT, () => {
  test("are written, read, found and listed, by paths with and without /workspace/", async () => {
    assert.equal(
      await textOf(tools(), "files/write", { path: "notes/tea.md", text: "Grüner Tee" }),
      "Wrote notes/tea.md.",
    );
    assert.equal(await readFile(inWorkspace("notes/tea.md"), "utf8"), "Grüner Tee");
    assert.equal(await textOf(tools(), "files/read", { path: "/workspace/notes/tea.md" }), "Grüner Tee");
    assert.match(await textOf(tools(), "files/list", { path: "notes" }), /^notes\/tea\.md$/);
    assert.equal(await textOf(tools(), "files/search", { words: "gruner" }), "notes/tea.md:1: Grüner Tee");
  });

  test("that exist are overwritten only by the tool that asks first", async () => {
    await textOf(tools(), "files/write", { path: "kept.md", text: "first" });
    assert.match(await errorOf(tools(), "files/write", { path: "kept.md", text: "second" }), /already exists/);
    assert.equal(await readFile(inWorkspace("kept.md"), "utf8"), "first");
    // An interrupted attempt may have written it.
    await textOf(tools(), "files/write", { path: "kept.md", text: "first" });
    const offered = await tools().list();
    const policies = Object.fromEntries(offered.map(({ name, policy }) => [name, policy]));
    assert.equal(policies["files/write"], "run");
    assert.equal(policies["files/overwrite"], "ask");
    await textOf(tools(), "files/overwrite", { path: "kept.md", text: "second" });
    assert.equal(await readFile(inWorkspace("kept.md"), "utf8"), "second");
  });

  test("are edited where the text is there exactly once", async () => {
    await textOf(tools(), "files/write", { path: "edit.md", text: "a b a $& c" });
    const edit = (old_text: string, new_text: string, all = false) => ({ path: "edit.md", old_text, new_text, all });
    assert.match(await errorOf(tools(), "files/edit", edit("a", "x")), /2 times/);
    assert.match(await errorOf(tools(), "files/edit", edit("z", "x")), /does not contain/);
    await textOf(tools(), "files/edit", edit("b", "$&"));
    await textOf(tools(), "files/edit", edit("a", "x", true));
    assert.equal(await readFile(inWorkspace("edit.md"), "utf8"), "x $& x $& c");
  });

  test("outside the workspace are refused, as a result", async () => {
    for (const path of ["../secret", "/etc/passwd", "/workspace/../secret"])
      assert.match(await errorOf(tools(), "files/read", { path }), /^Refused: .*outside the workspace/);
    assert.match(await errorOf(tools(), "files/read", { path: "absent.md" }), /does not exist/);
  });

  test("that are long are read in pieces that say how to go on", async () => {
    const text = Array.from({ length: 50_000 }, (_, at) => at % 10).join("");
    await writeFile(inWorkspace("long.txt"), text);
    let [read, offset]: [string, number] = ["", 0];
    for (;;) {
      const piece = await textOf(tools(), "files/read", { path: "long.txt", offset });
      assert.ok(piece.length <= 20_000);
      const note = /\n\[characters \d+ to (\d+) of 50000(.*)\]$/.exec(piece);
      assert.ok(note, piece.slice(-100));
      read += piece.slice(0, note.index);
      if (note[2] === "") break;
      offset = Number(note[1]);
    }
    assert.equal(read, text);
  });
});

describe("a call", TIMEOUT, () => {
  test("is told at its start and at its end", async () => {
    const news: StepProgress[] = [];
    await errorOf(tools({ news }), "files/read", { path: "absent" });
    const [started, ended] = news;
    assert.deepEqual(started, { kind: "tool", name: "files/read" });
    assert.ok(ended?.kind === "call" && ended.call.latency_ms >= 0);
    const { latency_ms: _, ...call } = ended.call;
    const error = "Refused: absent does not exist.";
    assert.deepEqual(call, { kind: "tool", name: "files/read", input: { path: "absent" }, output: error, error });
  });

  test("with arguments that do not fit, or of an unknown tool, returns an error as its result", async () => {
    assert.match(await errorOf(tools(), "files/read", { path: 7 }), /do not fit files\/read:\n- path: /);
    for (const name of ["files/fly", "nobody/reads", "files", ""])
      assert.match(await errorOf(tools(), name, {}), /There is no tool named/);
  });

  test("of a denied tool is refused, whoever makes it", async () => {
    const options = { tools: { deny: ["files/*"], run: ["files/list"] } };
    assert.match(await errorOf(tools({ options }), "files/list", {}), /denied/);
  });

  test("throws the reason of an abort", async () => {
    const reason = new Error("enough");
    await assert.rejects(tools({ signal: AbortSignal.abort(reason) }).call("time/now", {}), reason);
  });

  test("whose output is long returns its beginning, its end and the file with all of it", async () => {
    const names = Array.from({ length: 1000 }, (_, at) => `many/file-with-a-long-name-${at}.md`).sort();
    const overlay = tools({ is_rerun: true, ids: { session_id: "../odd session/ü" } });
    for (const path of names) await overlay.workspace.write(path, "x");
    const text = await textOf(overlay, "files/list", { path: "many" });
    assert.ok(text.length <= 20_000, String(text.length));
    assert.ok(text.startsWith(`${names[0]}\n`) && text.endsWith(names.at(-1) ?? ""));
    const path = /The whole is in (\S+);/.exec(text)?.[1] ?? "";
    assert.match(path, /^\/workspace\/\.everstep\/tool-outputs\/[^/]+\/4\.0-files_list-\w+\.txt$/);
    assert.equal(await overlay.workspace.read(path), names.join("\n"));
    assert.equal(
      (await overlay.workspace.list()).some((file) => file.startsWith(".everstep")),
      false,
    );
  });
});

describe("the policy", TIMEOUT, () => {
  const policyOf = async (options: CallOptions["options"], name: string) =>
    (await tools({ options: options ?? {} }).list()).find((tool) => tool.name === name)?.policy;

  test("asks for what may destroy and runs the rest", async () => {
    assert.equal(await policyOf({}, "files/read"), "run");
    assert.equal(await policyOf({}, "files/edit"), "ask");
  });

  test("is the session's if it has one: deny, then ask, then run", async () => {
    assert.equal(await policyOf({ tools: { run: ["files/*"] } }, "files/edit"), "run");
    assert.equal(await policyOf({ tools: { ask: ["**"], run: ["files/*"] } }, "files/read"), "ask");
    assert.equal(await policyOf({ tools: { deny: ["*/edit"], ask: ["**"] } }, "files/edit"), "deny");
    assert.equal(await policyOf({ tools: { deny: ["*"] } }, "files/edit"), "ask", "a star is one part of the name");
  });
});

describe("people/ask", TIMEOUT, () => {
  test("is a question with choices or a form, and a deadline", async () => {
    const asked = await tools().call("people/ask", { question: "Which?", choices: ["a", "b"], wait_s: 60 });
    assert.ok(asked.kind === "ask");
    assert.deepEqual(asked.ask, { text: "Which?", choices: [{ value: "a" }, { value: "b" }] });
    const left_s = (Date.parse(asked.until ?? "") - Date.now()) / 1000;
    assert.ok(left_s > 50 && left_s <= 60, String(left_s));
    const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const filled = await tools().call("people/ask", { question: "Who?", form });
    assert.deepEqual(filled, { kind: "ask", ask: { text: "Who?", schema: form }, resume: null });
  });

  test("with a form that cannot be shown to anybody is an error for the model", async () => {
    const form = { type: "object", properties: { nested: { type: "object" } } };
    assert.match(await errorOf(tools(), "people/ask", { question: "?", form }), /form\.properties\.nested/);
  });
});

describe("time", TIMEOUT, () => {
  test("is returned, and waited for by a time or by seconds", async () => {
    assert.ok(Math.abs(Date.parse(await textOf(tools(), "time/now")) - Date.now()) < 5000);
    const until = "2099-01-01T00:00:00.000Z";
    assert.deepEqual(await tools().call("time/wait", { until: "2099-01-01T02:00:00+02:00" }), { kind: "wait", until });
    const waited = await tools().call("time/wait", { seconds: 90 });
    assert.ok(waited.kind === "wait" && Math.abs(Date.parse(waited.until ?? "") - Date.now() - 90_000) < 5000);
    assert.match(await textOf(tools(), "time/wait", { until: "2001-01-01T00:00:00Z" }), /has passed/);
    assert.match(await errorOf(tools(), "time/wait", { until, seconds: 1 }), /either/);
    const far = await tools().call("time/wait", { seconds: 1e300 });
    assert.ok(far.kind === "wait" && far.until?.startsWith("9999-"));
  });
});

describe("memory/search", TIMEOUT, () => {
  test("finds what a session said", async () => {
    const session_id = await world().create("echo");
    await world().ended(await world().tell(session_id, "the zeppelin is grüne"));
    const text = await textOf(tools(), "memory/search", { query: "ZEPPELIN grune" });
    assert.match(text, new RegExp(`\\[session ${session_id}, step 0\\] the zeppelin is grüne`));
    assert.equal(await textOf(tools(), "memory/search", { query: "zeppelin absent-word" }), "Nothing was found.");
  });
});

/** A session whose moniker makes the calls in its guidance, one per step, with the actions they request in its frame. */
async function caller(on: World): Promise<string> {
  const name = on.moniker("reactive", async ({ step, state, guidance }, context) => {
    const [call] = guidance ?? [];
    const { name: tool, args } = call as { name?: string; args: Record<string, never> };
    if (tool === undefined) return { step, next_step: step, state: { ...state, told: call ?? null }, done: false };
    const { text, actions } = resultOf(await context.tools.call(tool, args));
    return { step, next_step: step, state, text, done: false, ...(actions && { actions }) };
  });
  return on.create(name, { options: { tools: { deny: ["own/secret"] }, model: "openai/some", max_steps: 9 } });
}

describe("agents", TIMEOUT, () => {
  test("are started together with the step, listed, read, guided and waited for", async () => {
    const parent = await caller(world());
    const start = { moniker: "echo", params: {} };
    await world().ended(await world().tell(parent, { name: "agents/start", args: start }));
    const [step] = await world().steps(parent);
    const child = `${parent}.0.0`;
    assert.equal(step?.text, `Started session ${child}.`);
    const session = await world().session(child);
    assert.deepEqual(session.spawned_by, { session_id: parent, iteration: 0 });
    const { tools: limits, model, max_steps } = session.options;
    assert.deepEqual(limits, { deny: ["own/secret"] }, "it must not escape what its starter may not do");
    assert.deepEqual([model, max_steps], ["openai/some", undefined]);

    const own = { ids: { session_id: parent, iteration: 1 } };
    assert.match(await textOf(tools(own), "agents/list", {}), new RegExp(`^${child} \\(agent, echo\\): waiting`));
    const guided = resultOf(await tools(own).call("agents/guide", { session_id: child, guidance: "hello" }));
    assert.deepEqual(guided.actions, [
      { action_type: "agent_interrupt", session_id: child, payload: { guidance: "hello" } },
    ]);
    await world().ended(
      await world().tell(parent, { name: "agents/guide", args: { session_id: child, guidance: "hi" } }),
    );
    await world().untilIteration(child, 0);
    const state = JSON.parse(await textOf(tools(own), "agents/read", { session_id: child })) as Record<string, unknown>;
    assert.equal(state["status"], "waiting");
    assert.deepEqual(state["last_steps"], [{ step: "0", text: "hi" }]);

    const waited = await tools(own).call("agents/wait", {});
    assert.deepEqual(waited, { kind: "wait", session_ids: [child] });
    assert.match(await errorOf(tools(), "agents/wait", { session_ids: [child] }), /You did not start/);
    await world().do("agent_destroy", child);
    await world().untilStatus(child, "stopped");
    assert.match(await textOf(tools(own), "agents/wait", { session_ids: [child] }), /stopped/);
    assert.match(await textOf(tools(own), "agents/wait", {}), /No session/);
  });

  test("that cannot be started or reached are errors for the model, not failures of the step", async () => {
    assert.match(await errorOf(tools(), "agents/start", { moniker: "nobody" }), /no moniker named nobody.*\n.*- joke/s);
    assert.match(
      await errorOf(tools(), "agents/start", { moniker: "count", params: { to: "x" } }),
      /Refused: .*params\.to/,
    );
    assert.match(await errorOf(tools(), "agents/guide", { session_id: "absent", guidance: "x" }), /unknown/);
    assert.match(await errorOf(tools(), "agents/guide", { session_id: "session", guidance: "x" }), /That is you/);
  });

  test("that started one another do not go on without end", async () => {
    let session_id = await caller(world());
    let text = "";
    for (let generation = 1; generation < 20 && !text.includes("started one another"); generation++) {
      const { moniker, iteration } = await world().session(session_id);
      await world().ended(await world().tell(session_id, { name: "agents/start", args: { moniker } }));
      text = (await world().steps(session_id)).at(-1)?.text ?? "";
      if (text.startsWith("Started")) session_id = `${session_id}.${iteration + 1}.0`;
    }
    assert.match(text, /started one another/);
    assert.ok(session_id.split(".").length > 5, session_id);
  });
});

describe("in a rerun of a step", TIMEOUT, () => {
  test("files are written to memory, and requests of the frame get their recorded result", async () => {
    const again = tools({ is_rerun: true });
    await textOf(again, "files/overwrite", { path: "kept.md", text: "not really" });
    assert.equal(await textOf(again, "files/read", { path: "kept.md" }), "not really");
    assert.notEqual(await readFile(inWorkspace("kept.md"), "utf8"), "not really");
    assert.equal((await again.call("people/ask", { question: "?" })).kind, "ask");
  });
});
