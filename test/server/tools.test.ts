import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { toolsSchema, toolTrialSchema } from "../../src/domain/tool-list.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { REFERENCE_SERVERS } from "../tools/mcp-servers.ts";
import { Api, problemOf, read } from "./api.ts";
import { everstep, tableRows } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import type { Environment } from "./spawn-everstep.ts";

/** Makes the requested call and reports its result. */
const CALLER = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "caller", kind: "reactive", description: "Calls tools.", params: z.object({}),
  async step({ step, state, guidance }, { tools }) {
    const [{ name, args }] = guidance;
    const outcome = await tools.call(name, args);
    return { step, next_step: step, state, done: false, text: outcome.text ?? "", data: outcome };
  },
});
`;
const TOOL = `import { defineTool, z } from "everstep/moniker";
export default defineTool({ description: "Greets.", input: z.object({ who: z.string() }), run: ({ who }) => "hello " + who });
`;
const SECRET = "hunter2-hunter2";

class ToolWorld implements AsyncDisposable {
  readonly folder: ScratchFolder;
  readonly server: ServerProcess;
  readonly api: Api;

  private constructor(folder: ScratchFolder, server: ServerProcess) {
    this.folder = folder;
    this.server = server;
    this.api = new Api(server.url);
  }

  static async open(mcp: object, more: Environment = {}): Promise<ToolWorld> {
    const folder = await scratchFolder();
    const files = { "monikers/caller.ts": CALLER, "tools/greet.ts": TOOL, "mcp.json": JSON.stringify(mcp) };
    for (const name of ["monikers", "tools"]) await mkdir(join(folder.path, name));
    for (const [path, text] of Object.entries(files)) await writeFile(join(folder.path, path), text);
    const server = await ServerProcess.start({
      EVERSTEP_MONIKERS: join(folder.path, "monikers"),
      EVERSTEP_TOOLS: join(folder.path, "tools"),
      EVERSTEP_MCP: join(folder.path, "mcp.json"),
      ...more,
    });
    return new ToolWorld(folder, server);
  }

  async call(session_id: string, name: string, args: Record<string, string>) {
    const { iteration } = await this.api.session(session_id);
    await this.api.post(`/api/sessions/${session_id}/interrupt`, { guidance: { name, args } });
    await eventually("the call", async () => (await this.api.session(session_id)).iteration > iteration);
    const step = (await this.api.steps(session_id)).at(-1);
    assert.ok(step);
    return step;
  }

  async tools(query: Record<string, string> = {}) {
    return read(await this.api.get("/api/tools", query), 200, toolsSchema);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    await this.folder[Symbol.asyncDispose]();
  }
}

const everything = { command: process.execPath, args: [REFERENCE_SERVERS.everything] };

describe("a server with tools", TIMEOUT, () => {
  test("lists, calls and records them, and says which servers it cannot reach", async () => {
    const env = { KEY: "${TEST_SECRET}" };
    const down = { command: process.execPath, args: ["-e", "console.error(process.env.KEY); process.exit(3)"], env };
    const mcpServers = { everything, down };
    const everstepPart = { deny: ["everything/get-env"], ask: ["own/*"] };
    await using world = await ToolWorld.open({ mcpServers, everstep: everstepPart }, { TEST_SECRET: SECRET });
    const { api, server } = world;

    const { tools, servers } = await world.tools();
    const policies = Object.fromEntries(tools.map(({ name, policy }) => [name, policy]));
    assert.deepEqual(
      ["files/read", "files/overwrite", "own/greet", "everything/echo", "everything/get-env"].map(
        (name) => policies[name],
      ),
      ["run", "ask", "ask", "run", "deny"],
    );
    assert.deepEqual(
      servers.find(({ name }) => name === "everything"),
      { name: "everything", status: "ready", error: null },
    );
    const failed = await eventually("the failure", async () => {
      const status = (await world.tools()).servers.find(({ name }) => name === "down");
      return status?.status === "failed" && status;
    });
    assert.match(failed.error ?? "", /ended|closed/);

    const { session_id } = await api.create("caller", {
      options: { tools: { run: ["own/greet"], deny: ["files/*"] } },
    });
    const own = Object.fromEntries((await world.tools({ session_id })).tools.map(({ name, policy }) => [name, policy]));
    assert.deepEqual([own["own/greet"], own["files/read"]], ["run", "deny"]);
    assert.equal((await world.call(session_id, "own/greet", { who: "you" })).text, "hello you");
    const step = await world.call(session_id, "everything/echo", { message: "hi" });
    assert.equal(step.text, "Echo: hi");
    assert.deepEqual(
      step.calls.map(({ kind, name, input, output }) => ({ kind, name, input, output })),
      [{ kind: "tool", name: "everything/echo", input: { message: "hi" }, output: "Echo: hi" }],
    );
    assert.match((await world.call(session_id, "files/read", { path: "x" })).text ?? "", /denied/);
    assert.match(
      (await api.get("/metrics")).text,
      /everstep_tool_call_duration_seconds_count\{server="everything",outcome="ok"\} 1/,
    );
    assert.equal(server.stderr.includes(SECRET), false, "a server's own words are logged without secrets");
    assert.match(server.stderr, /"server":"down"/);
    problemOf(await api.get("/api/tools", { session_id: "absent" }), 404);
  });

  test("lets people try those that change nothing, and no other", async () => {
    const rules = { read_only: ["own/*", "everything/get-*"], deny: ["everything/get-env"] };
    await using world = await ToolWorld.open({ mcpServers: { everything }, everstep: rules });
    const { api } = world;
    const trial = async (name: string, args: Record<string, string | number> = {}) =>
      read(await api.post("/api/tools/try", { name, args }), 200, toolTrialSchema);
    await world.tools();
    const { latency_ms, ...greeting } = await trial("own/greet", { who: "you" });
    assert.deepEqual(greeting, { kind: "result", text: "hello you", is_error: false });
    assert.ok(latency_ms >= 0);
    assert.equal((await trial("files/read", { path: "absent.md" })).is_error, true);
    assert.equal((await trial("time/wait", { seconds: 60 })).kind, "wait");
    const written = problemOf(
      await api.post("/api/tools/try", { name: "files/write", args: { path: "new.md", content: "x" } }),
      400,
    );
    assert.match(written.detail, /may change things/);
    assert.equal((await trial("files/list")).text.includes("new.md"), false);
    assert.match(problemOf(await api.post("/api/tools/try", { name: "everything/get-env" }), 400).detail, /denied/);
    problemOf(await api.post("/api/tools/try", { name: "files/absent" }), 404);
    assert.equal((await api.get("/api/agent-states")).text.includes("trial"), false);
  });

  test("prints them, loads changed ones without a restart, and ends their processes when it stops", async () => {
    await using world = await ToolWorld.open({ mcpServers: { everything } });
    const { server, api } = world;
    await world.tools();
    const printed = await everstep(["tools", "--url", server.url]);
    assert.equal(printed.code, 0, printed.stderr);
    const [table = "", statuses = ""] = printed.stdout.split("\n\n");
    const row = tableRows(table).find(({ TOOL: name }) => name === "own/greet");
    assert.deepEqual(row, { TOOL: "own/greet", POLICY: "run", KIND: "writes", DESCRIPTION: "Greets." });
    assert.ok(
      tableRows(statuses).some(({ SERVER: name, STATUS: status }) => name === "everything" && status === "ready"),
    );
    const json = await everstep(["tools", "--json", "--url", server.url]);
    assert.ok(toolsSchema.parse(JSON.parse(json.stdout)).tools.length > 20);

    await writeFile(join(world.folder.path, "tools/greet.ts"), TOOL.replace("hello ", "goodbye "));
    await api.post("/api/monikers/reload");
    const { session_id } = await api.create("caller");
    assert.equal((await world.call(session_id, "own/greet", { who: "you" })).text, "goodbye you");
    await writeFile(join(world.folder.path, "tools/greet.ts"), "export const x = 1;");
    const { text } = await api.post("/api/monikers/reload");
    assert.match(text, /tool_invalid: .*greet\.ts: it exports no tool/);
    assert.equal((await world.call(session_id, "own/greet", { who: "you" })).text, "goodbye you");

    const pid = Number(/"server":"everything","tools":\d+,"revision":"[^"]+","pid":(\d+)/.exec(server.stderr)?.[1]);
    assert.ok(await isRunning(pid));
    const { code } = await server.stop();
    assert.equal(code, 0);
    assert.equal(await isRunning(pid), false);
  });

  test("starts although no server of its file can be reached, and not where the file is wrong", async () => {
    const mcpServers = {
      silent: { command: process.execPath, args: ["-e", "process.stdin.resume()"] },
      web: { url: "http://127.0.0.1:9/mcp" },
    };
    await using world = await ToolWorld.open({ mcpServers });
    const { session_id } = await world.api.create("caller");
    assert.match((await world.call(session_id, "time/now", {})).text ?? "", /^\d{4}-/);
    const wrong = await ToolWorld.open({ mcpServers: { a: { command: 7 } } }).then(
      () => null,
      (error: Error) => error.message,
    );
    assert.match(wrong ?? "", /mcp_config_invalid: .*mcp\.json: mcpServers\.a\.command: /);
  });
});

/** False for a zombie process. */
const isRunning = (pid: number): Promise<boolean> =>
  readFile(`/proc/${pid}/stat`, "utf8").then(
    (stat) => !/\) Z /.test(stat),
    () => false,
  );
