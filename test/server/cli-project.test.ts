import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { VERSION } from "../../src/domain/version.ts";
import { REPOSITORY } from "../repository-files.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { type Environment, spawnEverstep } from "./spawn-everstep.ts";

type Ran = { code: number; stdout: string; stderr: string };
type Report = { ok: boolean; findings: { name: string; state: string; text: string; next?: string }[] };

async function everstep(args: string[], cwd: string, environment: Environment = {}): Promise<Ran> {
  const child = spawnEverstep(args, environment, cwd);
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
    });
  const [code] = (await once(child, "close")) as [number];
  return { code, ...said };
}

async function examine(
  cwd: string,
  environment: Environment = {},
  args: string[] = [],
): Promise<Report & { code: number }> {
  const { code, stdout } = await everstep(["doctor", "--json", ...args], cwd, environment);
  return { code, ...(JSON.parse(stdout) as Report) };
}

test("--version says the version of package.json", TIMEOUT, async () => {
  const { version } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")) as { version: string };
  const { code, stdout } = await everstep(["--version"], REPOSITORY);
  assert.deepEqual([code, stdout, VERSION], [0, `${version}\n`, version]);
});

describe("everstep in a project's folder", () => {
  test(
    "serves, reads .env but for what the environment has, finds the project's files and says four lines",
    TIMEOUT,
    async () => {
      await using scratch = await scratchFolder();
      await everstep(["init"], scratch.path);
      await mkdir(join(scratch.path, "tools"));
      await writeFile(
        join(scratch.path, "tools/length.ts"),
        `import { defineTool, z } from "everstep/moniker";
export const length = defineTool({ description: "Counts.", input: z.object({ of: z.string() }), run: ({ of }) => of.length });`,
      );
      await writeFile(join(scratch.path, ".env"), "EVERSTEP_STORE=lancedb:./elsewhere\nEVERSTEP_PORT=1\n");
      const child = spawnEverstep([], { EVERSTEP_PORT: "0" }, scratch.path);
      let said = "";
      for await (const text of (child.stdout as NodeJS.ReadableStream).setEncoding("utf8")) {
        said += String(text);
        if (/^Yours .*\n/m.test(said)) break;
      }
      child.kill();
      await once(child, "exit");
      assert.match(
        said,
        /^Everstep is up at (http:\/\/127\.0\.0\.1:\d+) \(store lancedb:\.\/elsewhere\)\n\nConsole {2}\1\/ /,
      );
      assert.match(said, new RegExp(`^Data {5}${join(scratch.path, "elsewhere")};`, "m"));
      assert.match(said, /^Model {4}none.*EVERSTEP_MODEL/m);
      assert.match(said, /^Yours {4}1 moniker, 1 tool$/m);
    },
  );

  test("init writes nothing where it would have to overwrite something", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    await writeFile(join(scratch.path, "mcp.json"), "mine");
    const { code, stderr } = await everstep(["init", "."], scratch.path);
    assert.equal(code, 1);
    assert.match(stderr, /^project_exists: .*mcp\.json/);
    assert.deepEqual(await readdir(scratch.path), ["mcp.json"]);
  });

  test("init keeps a package.json and says what to change in one that npm made", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const manifest = JSON.stringify({ name: "x", type: "commonjs", dependencies: { everstep: "1" } });
    await writeFile(join(scratch.path, "package.json"), manifest);
    const { code, stdout } = await everstep(["init"], scratch.path);
    assert.equal(code, 0);
    assert.match(stdout, /^ {2}npm pkg set type=module /m);
    assert.doesNotMatch(stdout, /npm install everstep/);
    assert.equal(await readFile(join(scratch.path, "package.json"), "utf8"), manifest);
    const { findings } = await examine(scratch.path);
    assert.match(findings.find(({ name }) => name === "monikers")?.text ?? "", /npm pkg set type=module/);
  });
});

describe("everstep doctor", () => {
  test("finds nothing broken in a new project, and changes nothing there", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    await everstep(["init"], scratch.path);
    const before = await readdir(scratch.path);
    const { code, ok, findings } = await examine(scratch.path, { EVERSTEP_PORT: "0" });
    assert.deepEqual([code, ok], [0, true], JSON.stringify(findings));
    assert.deepEqual(
      findings.map(({ name, state }) => `${name} ${state}`),
      ["Node ok", "folder ok", "folder ok", "store ok", "model note", "monikers ok", "MCP ok", "port ok"],
    );
    assert.deepEqual(await readdir(scratch.path), before);
  });

  test("names everything that is broken, with a next move for each", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const other = createServer((_, answer) => answer.writeHead(404).end());
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await mkdir(join(scratch.path, "monikers"));
    await writeFile(join(scratch.path, "monikers/none.ts"), "export default 5;");
    const command = { command: process.execPath, args: ["-e", "process.exit(3)"] };
    await writeFile(join(scratch.path, "mcp.json"), JSON.stringify({ mcpServers: { gone: command } }));
    const { code, ok, findings } = await examine(scratch.path, {
      EVERSTEP_STORE: "postgres://nobody@127.0.0.1:1/nothing",
      EVERSTEP_MODEL: "anthropic/some",
      EVERSTEP_PORT: String(port),
      MATRIX_HOMESERVER: `http://127.0.0.1:${port}`,
      MATRIX_USER_ID: "@bot:example.org",
      MATRIX_ACCESS_TOKEN: "token",
      MATRIX_ALLOWED_USERS: "*",
    });
    other.close();
    assert.deepEqual([code, ok], [1, false]);
    const broken = findings.filter(({ state }) => state === "broken");
    assert.deepEqual(
      broken.map(({ name }) => name),
      ["store", "model", "monikers", "MCP", "Matrix", "port"],
    );
    for (const { name, next = "" } of broken) assert.ok(next.length > 10, name);
    assert.match(broken[1]?.next ?? "", /ANTHROPIC_API_KEY/);
  });

  test("asks the model something with --online, and says what it answered with", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const provider = createServer((_, answer) =>
      answer.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"wrong key"}}'),
    );
    provider.listen(0, "127.0.0.1");
    await once(provider, "listening");
    const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
    const settings = {
      EVERSTEP_MODEL: "openai/m",
      OPENAI_API_KEY: "sk-secret-key",
      OPENAI_BASE_URL: url,
      EVERSTEP_PORT: "0",
    };
    const offline = await examine(scratch.path, settings);
    const { code, findings } = await examine(scratch.path, settings, ["--online"]);
    provider.close();
    assert.equal(offline.code, 0);
    assert.equal(code, 1);
    const model = findings.find(({ name }) => name === "model");
    assert.equal(model?.state, "broken");
    assert.doesNotMatch(JSON.stringify(findings), /sk-secret-key/);
  });

  test("takes a store that a running Everstep uses for a good one", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const server = spawnEverstep(["serve"], { EVERSTEP_PORT: "0" }, scratch.path);
    await once(server.stdout as NodeJS.ReadableStream, "data");
    const while_running = await examine(scratch.path, { EVERSTEP_PORT: "0" });
    server.kill();
    await once(server, "exit");
    const afterwards = await examine(scratch.path, { EVERSTEP_PORT: "0" });
    const store = (report: Report) => report.findings.find(({ name }) => name === "store")?.text ?? "";
    assert.match(store(while_running), /in use/);
    assert.match(store(afterwards), /opens \(format \d+\)/);
    assert.ok(!(await readdir(join(scratch.path, "data"))).includes("owner.pid"), "it is left as one that was closed");
  });
});
