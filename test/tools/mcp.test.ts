import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { askSchema } from "../../src/domain/question.ts";
import { checkFrame } from "../../src/sessions/check-frame.ts";
import type { ToolOutcome } from "../../src/tools/tool.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { errorOf, resultOf, textOf, toolsOf } from "./calls.ts";
import { HttpEverything, isAlive, Pool, reference, scripted, settings } from "./mcp-servers.ts";

const TIMEOUT = { timeout: 120_000 };
const isConnected = ({ message }: { message: string }): boolean => message === "tool server connected";

async function counting(more: Partial<typeof settings> = {}) {
  const folder = await scratchFolder();
  const notes = join(folder.path, "notes");
  const config = scripted("counting", { env: { NOTES: notes }, settings: { ...settings, ...more } });
  return { config, notes: async () => (await readFile(notes, "utf8")).trim().split("\n") };
}

describe("the reference servers", TIMEOUT, () => {
  test("over stdio are started once, list their tools and answer calls", async () => {
    await using pool = await Pool.open([reference("everything"), reference("memory")]);
    const tools = toolsOf(pool.registry);
    const offered = await tools.list();
    const policies = Object.fromEntries(offered.map(({ name, policy }) => [name, policy]));
    assert.equal(policies["everything/echo"], "run");
    assert.equal(policies["memory/create_entities"], "run");
    assert.equal(policies["memory/delete_entities"], "ask", "the server says that it destroys");
    assert.equal(await textOf(tools, "everything/echo", { message: "hello" }), "Echo: hello");
    assert.match(await errorOf(tools, "everything/echo", {}), /do not fit everything\/echo: .*'message'/);
    assert.deepEqual(pool.registry.servers(), [
      { name: "everything", status: "ready", error: null },
      { name: "memory", status: "ready", error: null },
    ]);
    assert.equal(pool.lines.filter(isConnected).length, 2);
  });

  test("hand over images and blobs as files of the workspace, and structure where there is no text", async () => {
    await using pool = await Pool.open([reference("everything")]);
    const tools = toolsOf(pool.registry);
    const text = await textOf(tools, "everything/get-tiny-image");
    const [, size, path] = /\[image \(image\/png\): (\d+) bytes in \/workspace\/(\S+\.png)\]/.exec(text) ?? [];
    const image = await readFile(join(pool.workspace, path ?? ""));
    assert.equal(image.length, Number(size));
    assert.equal(image.subarray(1, 4).toString(), "PNG");
    const blob = await textOf(tools, "everything/get-resource-reference", { resourceType: "Blob", resourceId: 1 });
    assert.match(blob, /\[resource demo:\/\/resource\/dynamic\/blob\/1 \(text\/plain\): \d+ bytes in \/workspace\//);
    const weather = await textOf(tools, "everything/get-structured-content", { location: "Chicago" });
    assert.deepEqual(Object.keys(JSON.parse(weather) as object).sort(), ["conditions", "humidity", "temperature"]);
  });

  test("see of our environment only what they need and what their configuration names", async () => {
    process.env["EVERSTEP_TEST_SECRET"] = "do not tell";
    try {
      await using pool = await Pool.open([reference("everything", [], { env: { GIVEN: "yes" } })]);
      const environment = JSON.parse(await textOf(toolsOf(pool.registry), "everything/get-env")) as JsonObject;
      assert.equal(environment["GIVEN"], "yes");
      assert.equal(environment["PATH"], process.env["PATH"]);
      assert.equal("EVERSTEP_TEST_SECRET" in environment, false);
    } finally {
      delete process.env["EVERSTEP_TEST_SECRET"];
    }
  });

  test("write files of a folder of their own, with outputs too long for a model kept whole", async () => {
    await using folder = await scratchFolder();
    const long = Array.from({ length: 60_000 }, (_, at) => `${at}\n`).join("");
    await writeFile(join(folder.path, "long.txt"), long);
    await using pool = await Pool.open([reference("filesystem", [folder.path])]);
    const tools = toolsOf(pool.registry);
    const path = join(folder.path, "new.txt");
    await textOf(tools, "filesystem/write_file", { path, content: "written" });
    assert.equal(await readFile(path, "utf8"), "written");
    const text = await textOf(tools, "filesystem/read_text_file", { path: join(folder.path, "long.txt") });
    assert.ok(text.length <= 20_000);
    const kept = /The whole is in (\S+);/.exec(text)?.[1] ?? "";
    assert.equal(await tools.workspace.read(kept), long);
    assert.match(await errorOf(tools, "filesystem/read_text_file", { path: "/etc/passwd" }), /outside allowed/);
  });

  test("ask during a call what nobody can answer then, and the model is told so", async () => {
    await using pool = await Pool.open([reference("everything")]);
    const text = await textOf(toolsOf(pool.registry), "everything/trigger-elicitation-request");
    assert.match(text, /the server asked a person: "Please provide inputs/);
  });

  test("over Streamable HTTP come back after a restart of the server", async () => {
    const server = await HttpEverything.start();
    await using pool = await Pool.open([server.config]);
    const tools = toolsOf(pool.registry);
    assert.equal(await textOf(tools, "web/echo", { message: "one" }), "Echo: one");
    await server.kill();
    const error = await errorOf(tools, "web/echo", { message: "two" });
    assert.match(error, /The server web .*The call did not happen\.$/s);
    assert.equal(pool.servers[0]?.status.status, "failed");
    assert.ok((await tools.list()).length > 5, "its tools are offered while it is away");
    const before = pool.lines.length;
    await server.start();
    await pool.line(isConnected, before);
    assert.equal(await textOf(tools, "web/echo", { message: "three" }), "Echo: three");
  });

  test("over Streamable HTTP that forgot the session are connected to again for the same call", async () => {
    const server = await HttpEverything.start();
    await using pool = await Pool.open([server.config]);
    const tools = toolsOf(pool.registry);
    await textOf(tools, "web/echo", { message: "one" });
    await server.kill();
    await server.start();
    assert.equal(await textOf(tools, "web/echo", { message: "two" }), "Echo: two");
  });
});

describe("a call", TIMEOUT, () => {
  test("that is aborted throws the reason at once, and the connection stays", async () => {
    await using pool = await Pool.open([reference("everything")]);
    const controller = new AbortController();
    const tools = toolsOf(pool.registry, { signal: controller.signal });
    await tools.list();
    const call = tools.call("everything/trigger-long-running-operation", { duration: 60, steps: 60 });
    const reason = new Error("enough");
    setImmediate(() => controller.abort(reason));
    await assert.rejects(call, reason);
    assert.equal(await textOf(toolsOf(pool.registry), "everything/echo", { message: "still" }), "Echo: still");
    assert.equal(pool.lines.filter(isConnected).length, 1);
  });

  test("whose server is killed says that it may have happened, and the next one works", async () => {
    await using pool = await Pool.open([reference("everything")]);
    const tools = toolsOf(pool.registry);
    await tools.list();
    const { pid } = (await pool.line(isConnected)) as unknown as { pid: number };
    const call = tools.call("everything/trigger-long-running-operation", { duration: 60, steps: 1 });
    setTimeout(() => process.kill(pid, "SIGKILL"), 50);
    const { text, is_error } = resultOf(await call);
    assert.equal(is_error, true);
    assert.match(
      text,
      /The server everything disconnected during the call of everything\/trigger-long-.* may have happened/,
    );
    const before = pool.lines.length;
    await pool.line(isConnected, before - 1);
    assert.equal(await textOf(tools, "everything/echo", { message: "back" }), "Echo: back");
  });

  test("is made once, even if it crashes its server", async () => {
    const { config, notes } = await counting();
    await using pool = await Pool.open([config]);
    const tools = toolsOf(pool.registry);
    assert.match(await errorOf(tools, "counting/exit"), /may have happened/);
    await pool.line(isConnected, pool.lines.findIndex(isConnected) + 1);
    assert.equal(await textOf(tools, "counting/count"), "1");
    assert.deepEqual(await notes(), ["start", "exit", "start", "count"]);
  });

  test("that is never answered ends after its time, and says that it may have happened", async () => {
    const { config, notes } = await counting({ call_timeout_s: 0.2 });
    await using pool = await Pool.open([config]);
    const tools = toolsOf(pool.registry);
    assert.match(await errorOf(tools, "counting/hang"), /did not answer within 0\.2 s.*may have happened/);
    assert.equal(await textOf(tools, "counting/count"), "1");
    assert.deepEqual(await notes(), ["start", "hang", "count"]);
  });

  test("that the server answers with an error tells it", async () => {
    const { config } = await counting();
    await using pool = await Pool.open([config]);
    assert.match(await errorOf(toolsOf(pool.registry), "counting/fail"), /counting\/fail failed: .*it broke/);
  });

  test("waits while the server has as many as it may have", async () => {
    const { config } = await counting({ concurrency: 2 });
    await using pool = await Pool.open([config]);
    const tools = toolsOf(pool.registry);
    const most = await Promise.all(Array.from({ length: 12 }, () => textOf(tools, "counting/count")));
    assert.equal(Math.max(...most.map(Number)), 2);
  });

  test("in a rerun of a step is made only if it reads", async () => {
    const { config, notes } = await counting();
    await using pool = await Pool.open([config, reference("everything")]);
    const again = toolsOf(pool.registry, { is_rerun: true });
    assert.match(await errorOf(again, "counting/count"), /this is a rerun/);
    assert.equal(await textOf(again, "everything/echo", { message: "read" }), "Echo: read");
    assert.deepEqual(await notes(), ["start"]);
  });
});

describe("the tools of a server", TIMEOUT, () => {
  test("come from all pages, and change when it says so", async () => {
    const { config } = await counting();
    await using pool = await Pool.open([config]);
    const tools = toolsOf(pool.registry);
    const names = async () => (await tools.list()).map(({ name }) => name);
    assert.deepEqual(
      await names(),
      ["count", "exit", "fail", "grow", "hang"].map((name) => `counting/${name}`),
    );
    await textOf(tools, "counting/grow");
    while (!(await names()).includes("counting/new")) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(await textOf(tools, "counting/new"), "1");
  });

  test("are what the file's globs say, whatever the server says", async () => {
    const rules = { read_only: ["counting/count"], idempotent: ["*/grow"], deny: ["**/exit"], ask: ["counting/fail"] };
    const { config } = await counting();
    await using pool = await Pool.open([config], rules);
    const options = { tools: { ask: ["counting/grow"] } };
    const offered = await toolsOf(pool.registry, { options }).list();
    const seen = offered.map(({ name, read_only, idempotent, policy }) => [name, read_only, idempotent, policy]);
    assert.deepEqual(seen, [
      ["counting/count", true, true, "run"],
      ["counting/exit", false, false, "deny"],
      ["counting/fail", false, false, "ask"],
      ["counting/grow", false, true, "ask"],
      ["counting/hang", false, false, "run"],
    ]);
    assert.match(await errorOf(toolsOf(pool.registry), "counting/exit"), /denied/);
  });
});

describe("a server of the 2026 revision", TIMEOUT, () => {
  const asked = (outcome: ToolOutcome) => {
    assert.ok(outcome.kind === "ask", JSON.stringify(outcome));
    askSchema.parse(outcome.ask);
    checkFrame({ step: "0", next_step: "0", state: {}, done: false, ask: outcome.ask });
    return outcome;
  };

  test("asks people one thing after the other, and is called with all answers by another process", async () => {
    await using pool = await Pool.open([scripted("modern")]);
    const args = { flight: "LH1" };
    const first = asked(await toolsOf(pool.registry).call("modern/book", args));
    assert.equal(first.ask.text, "modern/book asks: Which seat?");
    assert.deepEqual(first.ask.schema?.["properties"], { row: { type: "integer" } });

    await using other = await Pool.open([scripted("modern")]);
    const tools = toolsOf(other.registry);
    const second = asked(await tools.call("modern/book", args, { answer: { row: 12 }, resume: first.resume }));
    assert.deepEqual(second.ask, {
      text: "modern/book asks: Really?",
      choices: [{ value: "accept" }, { value: "decline" }],
    });
    const done = resultOf(await tools.call("modern/book", args, { answer: "decline", resume: second.resume }));
    assert.deepEqual(JSON.parse(done.text), {
      args,
      inputResponses: { seat: { action: "accept", content: { row: 12 } }, sure: { action: "decline" } },
      requestState: "state of the server",
    });
  });

  test("that needs what nobody here can give is an error for the model", async () => {
    await using pool = await Pool.open([scripted("modern")]);
    assert.match(await errorOf(toolsOf(pool.registry), "modern/sample"), /cannot be asked for here \("sampling/);
  });
});

describe("a server that misbehaves", TIMEOUT, () => {
  test("by never answering is not waited for, and does not hold up the others", async () => {
    const silent = scripted("silent", { settings: { ...settings, connect_timeout_s: 0.3 } });
    const { config } = await counting();
    await using pool = await Pool.open([silent, config]);
    for (const server of pool.servers) server.start();
    const tools = toolsOf(pool.registry);
    assert.equal(await textOf(tools, "counting/count"), "1");
    const { reason } = await pool.line(({ server, level }) => server === "silent" && level === "warn");
    assert.match(String(reason), /longer than 0\.3 s/);
    assert.match(await errorOf(tools, "silent/anything"), /the server silent is not connected/);
  });

  test("by not running is reported, and retried", async () => {
    const absent = scripted("absent", { command: "/no/such/program" });
    await using pool = await Pool.open([absent]);
    assert.deepEqual(await toolsOf(pool.registry).list(), []);
    assert.match(pool.registry.servers()[0]?.error ?? "", /ENOENT/);
    await pool.line(({ level }) => level === "debug");
  });

  test("by exiting on a newer request is restarted, and spoken to in the older protocol", async () => {
    await using folder = await scratchFolder();
    const STARTS = join(folder.path, "starts");
    await using pool = await Pool.open([scripted("strict", { env: { STARTS } })]);
    assert.equal(await textOf(toolsOf(pool.registry), "strict/hello"), "hello");
    assert.equal((await readFile(STARTS, "utf8")).trim().split("\n").length, 2);
  });

  test("by writing what is no message and flooding its log works, and its log is short and without secrets", async () => {
    const env = { SECRET: "hunter2-hunter2" };
    await using pool = await Pool.open([scripted("noisy", { env, secrets: [env.SECRET] })]);
    const tools = toolsOf(pool.registry);
    assert.match(
      await textOf(tools, "noisy/chatter"),
      /the secret is hunter2/,
      "what a tool answers is its own affair",
    );
    await pool.line(({ message }) => message.startsWith("started with …"));
    await pool.line(({ message }) => message.startsWith("line 1"));
    assert.ok(pool.lines.length < 300, String(pool.lines.length));
    assert.equal(JSON.stringify(pool.lines).includes("hunter2"), false);
    assert.ok(Math.max(...pool.lines.map(({ message }) => message.length)) < 3000);
  });

  test("by answering more than is allowed is an error, and works again afterwards", async () => {
    await using pool = await Pool.open([scripted("noisy")]);
    const tools = toolsOf(pool.registry);
    assert.match(await errorOf(tools, "noisy/huge"), /disconnected during the call.*may have happened/s);
    await pool.line(isConnected, pool.lines.findIndex(isConnected) + 1);
    await textOf(tools, "noisy/chatter");
  });
});

describe("at the end", TIMEOUT, () => {
  test("processes are ended, even those that ignore the end of their input, and none is restarted", async () => {
    const pool = await Pool.open([reference("everything"), scripted("stubborn")]);
    for (const server of pool.servers) server.start();
    const { pid } = (await pool.line(isConnected)) as unknown as { pid: number };
    const { message } = await pool.line(({ server, level }) => server === "stubborn" && level === "info");
    const stubborn = Number(message.replace("pid ", ""));
    assert.ok(isAlive(pid) && isAlive(stubborn));
    await pool[Symbol.asyncDispose]();
    assert.equal(isAlive(pid) || isAlive(stubborn), false);
    assert.deepEqual(
      pool.registry.servers().map(({ status }) => status),
      ["stopped", "stopped"],
    );
    await Promise.all(pool.servers.map((server) => server.stop()));
  });
});
