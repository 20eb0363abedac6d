import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";

const TOKEN = "sesame-of-mcp";
const server = sharedServer({ EVERSTEP_TOKEN: TOKEN });

const PACKAGE = dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json"));
const INSPECTOR = join(PACKAGE, "clients/launcher/build/index.js");
const run = promisify(execFile);

/** A request to a server, made by the inspector's command line. */
async function inspect(
  ...args: string[]
): Promise<{ tools?: { name: string }[]; structuredContent?: Record<string, unknown> }> {
  const target = ["--cli", `${server().url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${TOKEN}`];
  const { stdout } = await run(process.execPath, [INSPECTOR, ...target, ...args], {
    env: { ...process.env, HOME: server().folder },
  });
  return JSON.parse(stdout) as Awaited<ReturnType<typeof inspect>>;
}

describe("/mcp of a server with a token", () => {
  test("answers 401 without it, and says where to read what is needed", TIMEOUT, async () => {
    for (const headers of [{}, { authorization: "Bearer wrong" }]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      const response = await fetch(`${server().url}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
      assert.equal(response.status, 401);
      const challenge = response.headers.get("www-authenticate") ?? "";
      const address = /^Bearer resource_metadata="([^"]+)"$/.exec(challenge)?.[1];
      assert.ok(address, challenge);
      const metadata = (await (await fetch(address)).json()) as Record<string, unknown>;
      assert.deepEqual(
        [metadata["resource"], metadata["bearer_methods_supported"]],
        [`${server().url}/mcp`, ["header"]],
      );
    }
    const { status } = await fetch(`${server().url}/.well-known/oauth-protected-resource`);
    assert.equal(status, 200);
  });

  test("answers what is not JSON as JSON-RPC does, and takes POST only", TIMEOUT, async () => {
    const authorization = `Bearer ${TOKEN}`;
    const response = await fetch(`${server().url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: "{",
    });
    assert.equal(response.status, 400);
    assert.equal(((await response.json()) as { error: { code: number } }).error.code, -32700);
    assert.equal((await fetch(`${server().url}/mcp`, { headers: { authorization } })).status, 405);
  });

  test("lets the official client in with it", TIMEOUT, async () => {
    const client = new Client({ name: "a test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server().url}/mcp`), { requestInit }));
    assert.equal((await client.listTools()).tools.length, 11);
    await client.close();
  });

  test("is driven by the inspector's command line", TIMEOUT, async () => {
    const { tools } = await inspect("--method", "tools/list");
    assert.equal(tools?.length, 11);
    const start = ["--method", "tools/call", "--tool-name", "start_agent", "--tool-arg", "moniker=echo"];
    const { session_id } = (await inspect(...start)).structuredContent ?? {};
    const guide = ["--tool-name", "guide", "--tool-arg", `session_id=${String(session_id)}`, "text=inspected"];
    const { receipt, text } = (await inspect("--method", "tools/call", ...guide)).structuredContent ?? {};
    assert.deepEqual([receipt, text], ["consumed", "inspected"]);
  });
});

describe("/mcp of a server without a token", () => {
  const open = sharedServer();
  test("refuses pages of other places", TIMEOUT, async () => {
    const response = await fetch(`${open().url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: "https://evil.example" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    assert.equal(response.status, 403);
  });
});
