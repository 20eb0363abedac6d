import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { pathOf } from "../server/api.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { PROGRAM } from "../server/spawn-everstep.ts";
import { sharedWorld } from "../server/world.ts";

const world = sharedWorld();

const TOOLS = [
  "answer",
  "destroy",
  "fork",
  "guide",
  "list_monikers",
  "list_sessions",
  "pause",
  "read_session",
  "resume",
  "search",
  "start_agent",
];
/** How a client negotiates the protocol's revision: the one of 2025, the newest that both know, or a single fixed one. */
const NEGOTIATIONS = {
  legacy: { mode: "legacy" },
  auto: { mode: "auto" },
  pinned: { mode: { pin: "2026-07-28" } },
} as const;

type Negotiation = keyof typeof NEGOTIATIONS;
type ElicitationHandler = (message: string) => { action: "accept" | "decline"; content?: Record<string, string> };

async function connect(negotiation: Negotiation, elicit?: ElicitationHandler): Promise<Client & AsyncDisposable> {
  const client = new Client(
    { name: "a test", version: "1" },
    {
      versionNegotiation: NEGOTIATIONS[negotiation],
      capabilities: elicit ? { elicitation: { form: {} } } : {},
    },
  );
  if (elicit) client.setRequestHandler("elicitation/create", ({ params }) => elicit(params.message));
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", world().server.url)));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

type Structured = Record<string, unknown>;
const call = async (client: Client, name: string, args: Record<string, unknown> = {}): Promise<Structured> => {
  const { isError, structuredContent, content } = await client.callTool({ name, arguments: args });
  assert.ok(!isError, `${name}: ${JSON.stringify(content)}`);
  const text = (content as { type: string; text: string }[])[0]?.text ?? "";
  assert.deepEqual(JSON.parse(text), structuredContent, "the text says the same");
  return structuredContent as Structured;
};
const fail = async (client: Client, name: string, args: Record<string, unknown>): Promise<string> => {
  const { isError, content } = await client.callTool({ name, arguments: args });
  assert.ok(isError, `${name} goes well`);
  return (content as { text: string }[])[0]?.text ?? "";
};

for (const negotiation of ["legacy", "auto", "pinned"] as const)
  describe(`the official MCP client, ${negotiation}`, () => {
    test("finds the tools with their schemas and hints", TIMEOUT, async () => {
      await using client = await connect(negotiation);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(({ name }) => name).sort(), TOOLS);
      for (const { name, description, inputSchema, outputSchema } of tools) {
        assert.ok(description && inputSchema.type === "object" && outputSchema?.type === "object", name);
      }
      const hints = new Map(tools.map(({ name, annotations }) => [name, annotations]));
      for (const name of ["list_monikers", "list_sessions", "read_session", "search"])
        assert.equal(hints.get(name)?.readOnlyHint, true, name);
      assert.equal(hints.get("destroy")?.destructiveHint, true);
      assert.equal(hints.get("pause")?.destructiveHint, false);
    });

    test(
      "starts an agent, guides it and gets the receipt, reads, forks, pauses, resumes, searches, destroys",
      TIMEOUT,
      async () => {
        await using client = await connect(negotiation);
        const { monikers } = await call(client, "list_monikers");
        assert.ok((monikers as { name: string }[]).some(({ name }) => name === "echo"));
        const { session_id } = await call(client, "start_agent", {
          moniker: "echo",
          agent_id: `parrot ${negotiation}`,
        });
        const receipt = await call(client, "guide", { session_id, guidance: `polly ${negotiation}` });
        assert.deepEqual(
          [receipt["receipt"], receipt["consumed_iteration"], receipt["text"]],
          ["consumed", 0, `polly ${negotiation}`],
        );
        await call(client, "guide", { session_id, text: "as text" });
        const reading = await call(client, "read_session", { session_id, wait_s: 20 });
        const { session, steps } = reading as {
          session: { status: string; iteration: number };
          steps: { text: string }[];
        };
        assert.deepEqual([session.status, session.iteration], ["waiting", 1]);
        assert.deepEqual(
          steps.map(({ text }) => text),
          [`polly ${negotiation}`, "as text"],
        );
        const after = await call(client, "read_session", { session_id, after_iteration: 0 });
        assert.equal((after["steps"] as unknown[]).length, 1);
        assert.equal((await call(client, "pause", { session_id, reason: "lunch" }))["outcome"], "ok");
        const held = await call(client, "guide", { session_id, guidance: "later" });
        assert.equal(held["receipt"], "delivered");
        assert.match(String(held["next"]), /resume/);
        assert.equal((await call(client, "resume", { session_id }))["outcome"], "ok");
        const fork = await call(client, "fork", { session_id, iteration: 0, guidance: "branched" });
        const forked = await call(client, "read_session", { session_id: fork["session_id"], wait_s: 20 });
        assert.deepEqual(
          (forked["steps"] as { text: string }[]).map(({ text }) => text),
          [`polly ${negotiation}`, "branched"],
        );
        const { hits } = await call(client, "search", { q: "branched", session_id: fork["session_id"] });
        assert.ok((hits as unknown[]).length > 0);
        const { sessions } = await call(client, "list_sessions", { agent_id: `parrot ${negotiation}` });
        assert.equal((sessions as unknown[]).length, 2);
        assert.equal((await call(client, "destroy", { session_id }))["outcome"], "ok");
        assert.match(await fail(client, "guide", { session_id, guidance: "too late" }), /stopp/);
      },
    );

    test("is told errors as answers with a next move", TIMEOUT, async () => {
      await using client = await connect(negotiation);
      assert.match(await fail(client, "read_session", { session_id: "nobody" }), /nobody; list_sessions/);
      assert.match(await fail(client, "guide", { session_id: "nobody", guidance: "x" }), /list_sessions/);
      assert.match(await fail(client, "start_agent", { moniker: "dance" }), /moniker/);
      assert.match(
        await fail(client, "start_agent", { moniker: "count", params: { to: "x" } }),
        /params.to.*list_monikers/,
      );
      assert.match(await fail(client, "start_agent", {}), /list_monikers/);
    });

    test("reads sessions and conversations as resources", TIMEOUT, async () => {
      await using client = await connect(negotiation);
      const { api } = world();
      const conversation_id = await api.conversation({ title: `table ${negotiation}` });
      const session_id = `a session/with % signs ${negotiation}`;
      await api.create("echo", { session_id, conversation_id });
      await api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: "good morning" });
      await world().iteration(session_id, 0);
      const { resources } = await client.listResources();
      const session = resources.find(({ name }) => name === session_id);
      const conversation = resources.find(({ name }) => name === conversation_id);
      assert.ok(session && conversation, "both are listed");
      for (const { uri } of [session, conversation]) {
        const { contents } = await client.readResource({ uri });
        assert.match((contents[0] as { text: string }).text, /good morning/);
      }
      await assert.rejects(client.readResource({ uri: "everstep://sessions/nobody" }));
      assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 2);
    });

    test("waits until a session that runs has ended", TIMEOUT, async () => {
      await using client = await connect(negotiation);
      const { session_id } = await call(client, "start_agent", { moniker: "count", params: { to: 5, delay_ms: 20 } });
      const reading = await call(client, "read_session", { session_id, wait_s: 60 });
      assert.equal((reading["session"] as { status: string }).status, "done");
      assert.equal((reading["steps"] as unknown[]).length, 6);
    });
  });

describe("a session's question", () => {
  const ASK = {
    moniker: "script",
    params: {
      frames: [
        {
          step: "0",
          next_step: "1",
          state: {},
          done: false,
          text: "wondering",
          ask: { text: "Which way?", choices: [{ value: "left", label: "To the left" }, { value: "right" }] },
        },
        { step: "1", next_step: "2", state: {}, done: true, text: "gone" },
      ],
    },
  };

  test("comes as text where the client cannot ask its person, and is answered with answer", TIMEOUT, async () => {
    for (const negotiation of ["legacy", "pinned"] as const) {
      await using client = await connect(negotiation);
      const { session_id } = await call(client, "start_agent", ASK);
      const reading = await call(client, "read_session", { session_id, wait_s: 30 });
      assert.match(String(reading["next"]), /Which way\?.*answer.*"left", "right"/s);
      assert.match(await fail(client, "answer", { session_id }), /cannot ask/);
      assert.match(await fail(client, "answer", { session_id, answer: "up" }), /must be one of "left", "right"/);
      const receipt = await call(client, "answer", { session_id, answer: "right", user_id: "ann" });
      assert.deepEqual([receipt["receipt"], receipt["text"]], ["consumed", "gone"]);
      assert.match(await fail(client, "answer", { session_id, answer: "right" }), /has no open question/);
    }
  });

  test("is put before the person by a client that can, and the session goes on with the answer", TIMEOUT, async () => {
    for (const tool of ["read_session", "answer"]) {
      const asked: string[] = [];
      await using client = await connect("auto", (message) => {
        asked.push(message);
        return { action: "accept", content: { answer: "left" } };
      });
      const { session_id } = await call(client, "start_agent", ASK);
      if (tool === "answer") await world().session(String(session_id), ({ question }) => question !== null);
      const answer = await call(client, tool, { session_id, wait_s: 30 });
      assert.deepEqual(asked, ["Which way?"]);
      if (tool === "read_session") assert.equal((answer["session"] as { status: string }).status, "done");
      const done = await world().status(String(session_id), "done");
      const [, step] = await world().api.steps(done.session_id);
      assert.equal((step?.guidance[0] as { answer?: string } | undefined)?.answer, "left");
    }
  });

  test("stays open where the person declines", TIMEOUT, async () => {
    await using client = await connect("auto", () => ({ action: "decline" }));
    const { session_id } = await call(client, "start_agent", ASK);
    const reading = await call(client, "read_session", { session_id, wait_s: 30 });
    assert.equal((reading["session"] as { question: { text: string } }).question.text, "Which way?");
    assert.match(await fail(client, "answer", { session_id }), /did not answer/);
  });
});

describe("everstep mcp", () => {
  const bridge = (url: string) =>
    new StdioClientTransport({
      command: process.execPath,
      args: [PROGRAM, "mcp", "--url", url],
      env: { PATH: process.env["PATH"] ?? "" },
    });

  for (const negotiation of ["legacy", "pinned"] as const)
    test(`serves the same over stdio, ${negotiation}`, TIMEOUT, async () => {
      const client = new Client({ name: "a test", version: "1" }, { versionNegotiation: NEGOTIATIONS[negotiation] });
      await client.connect(bridge(world().server.url));
      const { session_id } = await call(client, "start_agent", { moniker: "echo" });
      const receipt = await call(client, "guide", { session_id, guidance: "over stdio" });
      assert.deepEqual([receipt["receipt"], receipt["text"]], ["consumed", "over stdio"]);
      await client.close();
    });

  test("says what to do where no server answers", TIMEOUT, async () => {
    const client = new Client({ name: "a test", version: "1" });
    await assert.rejects(client.connect(bridge("http://127.0.0.1:1")), /everstep serve/);
    await client.close();
  });
});
