import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AgentApi } from "../../src/agent-api/agent-api.ts";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { agentUrl, RawClient } from "./raw-client.ts";

const TOKEN = "a-secret-that-nobody-guesses";

describe("the one-chat socket of a server with a token", () => {
  const server = sharedServer({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_LOG_LEVEL: "trace" });

  test("opens with the token in the header or in the address", TIMEOUT, async () => {
    using byHeader = await RawClient.open(server().url, { headers: { authorization: `Bearer ${TOKEN}` } });
    using byAddress = await RawClient.open(server().url, { query: `?token=${TOKEN}` });
    assert.equal(byHeader.session_id, byAddress.session_id);
    assert.match((await byAddress.say("help")).text, /list files/);
  });

  const WRONG: [name: string, options: { headers?: Record<string, string>; query?: string }][] = [
    ["no token", {}],
    ["another token", { headers: { authorization: "Bearer another" } }],
    ["half of the token", { query: `?token=${TOKEN.slice(0, 10)}` }],
    ["an empty token", { query: "?token=" }],
    ["the token as a name and password", { headers: { authorization: `Basic ${btoa(`x:${TOKEN}`)}` } }],
    [
      "another token in the header and the right one in the address",
      { headers: { authorization: "Bearer another" }, query: `?token=${TOKEN}` },
    ],
  ];
  for (const [name, options] of WRONG)
    test(`refuses ${name} with 401`, TIMEOUT, async () => {
      await assert.rejects(RawClient.open(server().url, options), /401/);
    });

  test("accepts any host and origin, since the token is enough", TIMEOUT, async () => {
    const headers = { authorization: `Bearer ${TOKEN}`, host: "everstep.example" };
    using client = await RawClient.open(server().url, { headers, origin: "https://console.example" });
    assert.match(client.session_id, /^default/);
  });

  test("lets AgentApi in with its token, and tells it if the token is missing", TIMEOUT, async () => {
    const stranger = new AgentApi("stranger", agentUrl(server().url));
    await assert.rejects(stranger.connect(), { name: "AgentApiError", message: /401/ });
    await stranger.close();
    const api = new AgentApi("friend", agentUrl(server().url), { token: TOKEN });
    await api.connect();
    assert.match(api.session_id ?? "", /^default/);
    await api.close();
  });

  test("needs it for the reset as well", TIMEOUT, async () => {
    const reset = (headers: Record<string, string>) => fetch(`${server().url}/reset`, { method: "POST", headers });
    assert.equal((await reset({})).status, 401);
    assert.equal((await reset({ authorization: `Bearer ${TOKEN}` })).status, 200);
  });

  test("never writes the token into the log", () => {
    assert.ok(!(server().stdout + server().stderr).includes(TOKEN));
  });
});

describe("the one-chat socket of a server without a token", () => {
  const server = sharedServer();

  for (const origin of ["http://localhost:5173", "http://127.0.0.1", "http://[::1]:80", "http://console.localhost"])
    test(`opens for a page of ${origin}`, TIMEOUT, async () => {
      using client = await RawClient.open(server().url, { origin });
      assert.match(client.session_id, /^default/);
    });

  for (const origin of [
    "https://evil.example",
    "http://127.0.0.1.evil.example",
    "null",
    "http://localhost.evil.example",
    "file://",
  ])
    test(`refuses a page of ${origin} with 403`, TIMEOUT, async () => {
      await assert.rejects(RawClient.open(server().url, { origin }), /403/);
    });

  for (const host of ["evil.example", "evil.example:4180", "127.0.0.1.evil.example", "[::2]", "0x7f.1.evil.example"])
    test(`refuses the host name ${host} with 403`, TIMEOUT, async () => {
      await assert.rejects(RawClient.open(server().url, { headers: { host } }), /403/);
    });
});
