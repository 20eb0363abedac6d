import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { EverstepError } from "../../src/domain/errors.ts";
import { readMcpConfig } from "../../src/tools/mcp/mcp-config.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

const SECRET = "s3cr3t-value";

async function readText(text: string, environment: NodeJS.ProcessEnv = {}) {
  await using folder = await scratchFolder();
  const path = join(folder.path, "mcp.json");
  await writeFile(path, text);
  return await readMcpConfig({ path, environment, taken: ["files", "own"] });
}
const read = (content: object, environment: NodeJS.ProcessEnv = {}) => readText(JSON.stringify(content), environment);

describe("mcp.json", () => {
  test("is read in the format that MCP clients share, with variables expanded", async () => {
    const environment = { TOKEN: SECRET, HOME: "/home-of-somebody" };
    const { servers, rules } = await read(
      {
        mcpServers: {
          local: {
            type: "stdio",
            command: "npx",
            args: ["-y", "thing", "${HOME}/x"],
            env: { KEY: "${TOKEN}" },
            alwaysAllow: [],
          },
          remote: { url: "https://${HOST:-example.org}/mcp", headers: { authorization: "Bearer ${TOKEN}" } },
          off: { command: "x", disabled: true },
        },
        everstep: {
          ask: ["local/*"],
          read_only: ["remote/get_*"],
          concurrency: 3,
          servers: { remote: { call_timeout_s: 5 } },
        },
      },
      environment,
    );
    assert.deepEqual(
      servers.map((server) => ({ ...server, secrets: undefined })),
      [
        {
          name: "local",
          kind: "stdio",
          settings: { concurrency: 3, call_timeout_s: 300, connect_timeout_s: 60 },
          command: "npx",
          args: ["-y", "thing", "/home-of-somebody/x"],
          env: { KEY: SECRET },
          secrets: undefined,
        },
        {
          name: "remote",
          kind: "http",
          settings: { concurrency: 3, call_timeout_s: 5, connect_timeout_s: 60 },
          url: "https://example.org/mcp",
          headers: { authorization: `Bearer ${SECRET}` },
          secrets: undefined,
        },
      ],
    );
    assert.deepEqual([rules.ask, rules.read_only], [["local/*"], ["remote/get_*"]]);
    assert.ok(servers.every(({ secrets }) => secrets.includes(SECRET)));
  });

  const WRONG: [name: string, content: object, message: RegExp][] = [
    ["a command that is no text", { mcpServers: { a: { command: 7 } } }, /mcpServers\.a\.command: /],
    ["neither command nor url", { mcpServers: { a: { args: [] } } }, /mcpServers\.a: give either command or url/],
    ["both", { mcpServers: { a: { command: "x", url: "http://x" } } }, /mcpServers\.a: give either/],
    [
      "an argument that is no text",
      { mcpServers: { a: { command: "x", args: ["y", 1] } } },
      /mcpServers\.a\.args\.1: /,
    ],
    [
      "an address that is none",
      { mcpServers: { a: { url: `ftp://u:${SECRET}@x` } } },
      /mcpServers\.a\.url: must be an http/,
    ],
    [
      "a variable that is not set",
      { mcpServers: { a: { command: "x", env: { K: "${NOPE}" } } } },
      /a\.env\.K: the variable NOPE/,
    ],
    ["a name that is taken", { mcpServers: { files: { command: "x" } } }, /mcpServers\.files: a built-in server/],
    ["a name with a slash", { mcpServers: { "a/b": { command: "x" } } }, /"a\/b" cannot be a server's name/],
    ["the old transport", { mcpServers: { a: { type: "sse", url: "http://x" } } }, /mcpServers\.a\.type: sse/],
    ["a word that nobody knows", { everstep: { asks: [] } }, /everstep: .*asks/],
    ["a glob that is no text", { everstep: { deny: [1] } }, /everstep\.deny\.0: /],
    ["settings of a server that is not there", { everstep: { servers: { b: {} } } }, /everstep\.servers\.b: no server/],
    ["no calls at a time", { everstep: { concurrency: 0 } }, /everstep\.concurrency: /],
  ];
  for (const [name, content, message] of WRONG)
    test(`with ${name} is refused, with the position and without its content`, async () => {
      const error = await read(content).then(
        () => null,
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof EverstepError && error.code === "mcp_config_invalid");
      assert.match(error.message, message);
      assert.equal(error.message.includes(SECRET), false);
    });

  test("that is no JSON is refused without a quotation", async () => {
    await assert.rejects(readText(`{"mcpServers": {"a": {"env": {"K": "${SECRET}" "L": 1}}}}`), (error: Error) => {
      assert.match(error.message, /it is not JSON \(line 1 column \d+\)/);
      return !error.message.includes(SECRET);
    });
  });

  test("may be absent unless it is named", async () => {
    const path = "/no/such/mcp.json";
    await assert.rejects(readMcpConfig({ path, environment: {}, taken: [] }), /cannot be read \(ENOENT\)/);
    assert.deepEqual((await readMcpConfig({ environment: {}, taken: [] })).servers, []);
  });
});
