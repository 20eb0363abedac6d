import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { after, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AgentApi, AgentApiError, type AgentApiOptions, AgentBusyError } from "../../src/agent-api/agent-api.ts";
import type { ServerFrame } from "../../src/agent-api/messages.ts";
import { failing, ModelServer } from "../llm/model-server.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { within } from "../within.ts";
import { echoing, modelEnvironment } from "./model-environment.ts";
import { agentUrl } from "./raw-client.ts";
import { silentServer } from "./stand-in-agent.ts";

const LEAVING_CLIENT = fileURLToPath(new URL("leaving-client.ts", import.meta.url));

async function joined(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

describe("AgentApi with a real agent", () => {
  let model: ModelServer;
  let server: ServerProcess;
  const open: AgentApi[] = [];
  before(async () => {
    model = await ModelServer.open();
    server = await ServerProcess.start(modelEnvironment(model));
  });
  beforeEach(() => {
    model.clear();
    model.otherwise(echoing);
  });
  after(async () => {
    for (const api of open) await api.close();
    await server.finish();
    await model[Symbol.asyncDispose]();
  });
  const connect = async (options: AgentApiOptions = {}): Promise<AgentApi> => {
    const api = new AgentApi("x".repeat(200), agentUrl(server.url), options);
    open.push(api);
    await api.connect();
    return api;
  };

  test("yields the answer piece by piece and reports its tokens", TIMEOUT, async () => {
    const api = await connect();
    assert.equal(api.isConnected, true);
    assert.match(api.session_id ?? "", /^default/);
    assert.equal(api.last_tokens_used, 0);
    model.otherwise(null);
    const answer = api.sendMessage("Tell me of the sea.");
    const call = await model.next();
    call.say("The sea");
    assert.deepEqual(await answer.next(), { done: false, value: "The sea" });
    call.say(" is wide.");
    call.end();
    assert.equal(await joined(answer), " is wide.");
    assert.equal(api.last_tokens_used, 150);
  });

  test("throws AgentBusyError for a second question until the first has ended", TIMEOUT, async () => {
    const api = await connect();
    const first = api.sendMessage("One.");
    assert.throws(() => api.sendMessage("Two."), AgentBusyError);
    assert.equal(await joined(first), "Answer to: One.");
    assert.equal(await joined(api.sendMessage("Three.")), "Answer to: Three.");
  });

  test("reports why a question could not be answered, and takes the next one", TIMEOUT, async () => {
    const api = await connect();
    model.will(failing(401));
    assert.match(await joined(api.sendMessage("One.")), /^I could not answer that: .*401/);
    assert.equal(await joined(api.sendMessage("Two.")), "Answer to: Two.");
    await assert.rejects(joined(api.sendMessage("")), { name: "AgentApiError", code: "bad_message" });
    assert.equal(await joined(api.sendMessage("Three.")), "Answer to: Three.");
  });

  test("reports that an answer starts over, and then yields all of it", TIMEOUT, async () => {
    const api = await connect();
    model.otherwise(null);
    let text = "";
    const answer = api.sendMessage("A tale.", {
      on_restart: () => {
        text = "";
      },
    });
    const call = await model.next();
    call.say("Once upon");
    text += (await answer.next()).value;
    assert.equal(text, "Once upon");
    call.cut();
    await (await model.next()).reply("There was.");
    for await (const chunk of answer) text += chunk;
    assert.equal(text, "There was.");
    assert.equal(api.isBusy, false);
  });

  test("hands frames that belong to no question to the callback", TIMEOUT, async () => {
    const frames: ServerFrame[] = [];
    const bothFrames = Promise.withResolvers<void>();
    const api = await connect({
      callback(frame) {
        frames.push(frame);
        if (frames.length === 2) bothFrames.resolve();
      },
    });
    await joined(api.sendMessage("One."));
    assert.deepEqual(
      frames.map(({ type }) => type),
      ["status"],
    );
    await fetch(`${server.url}/reset`, { method: "POST" });
    await bothFrames.promise;
    assert.deepEqual(
      frames.map(({ type }) => type),
      ["status", "status"],
    );
    const [, fresh] = frames;
    assert.ok(fresh?.type === "status" && fresh.session_id === api.session_id);
  });

  test("fails the pending question when the agent is killed, and reconnects by itself", TIMEOUT, async () => {
    const lost = Promise.withResolvers<AgentApi>();
    const back = Promise.withResolvers<void>();
    let statuses = 0;
    const api = await connect({
      on_disconnect: lost.resolve,
      callback({ type }) {
        if (type === "status" && ++statuses === 2) back.resolve();
      },
    });
    const { session_id } = api;
    model.otherwise((call) => call.say("Once upon"));
    const answer = api.sendMessage("A tale.");
    assert.deepEqual(await answer.next(), { done: false, value: "Once upon" });
    await server.kill();
    await assert.rejects(answer.next(), { name: "AgentApiError", code: "disconnected" });
    assert.equal(await lost.promise, api);
    assert.equal(api.isConnected, false);
    assert.throws(() => api.sendMessage("Anyone?"), { name: "AgentApiError", code: "disconnected" });
    model.otherwise(echoing);
    await server.start();
    await within(60_000, back.promise, () => "it did not come back");
    assert.equal(api.session_id, session_id);
    assert.equal(await joined(api.sendMessage("Are you back?")), "Answer to: Are you back?");
  });

  test("ends with close(): the pending question fails, and nothing reconnects", TIMEOUT, async () => {
    let lost = 0;
    const api = await connect({ on_disconnect: () => void lost++ });
    model.otherwise(() => {});
    const answer = api.sendMessage("A tale.");
    const ended = assert.rejects(joined(answer), { name: "AgentApiError", code: "closed" });
    await model.next();
    await api.close();
    await ended;
    await api.close();
    assert.equal(api.isConnected, false);
    assert.equal(lost, 0, "who closes needs not be told");
    assert.throws(() => api.sendMessage("Anyone?"), AgentApiError);
    // The agent still has the question; answer it, so that it does not hold up the following tests.
    await (model.calls.at(-1) ?? assert.fail()).reply("Late.");
    model.otherwise(echoing);
    await api.connect();
    assert.equal(await joined(api.sendMessage("Again.")), "Answer to: Again.");
  });

  const run = async (...args: string[]) => {
    const child = spawn(process.execPath, [LEAVING_CLIENT, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const [said, [code]] = await Promise.all([
      textOf(child.stdout),
      within(60_000, once(child, "exit"), () => "the program did not end"),
    ]);
    return { said, code: code as number };
  };

  test("lets its program end by itself after close()", TIMEOUT, async () => {
    assert.deepEqual(await run(agentUrl(server.url)), { said: "Answer to: help\n", code: 0 });
  });

  test("lets its program end by itself if there never was an agent", TIMEOUT, async () => {
    const nobody = await silentServer();
    const { port } = nobody.address() as AddressInfo;
    await nobody[Symbol.asyncDispose]();
    assert.deepEqual(await run(`ws://127.0.0.1:${port}/agent_ws/`, "unreachable"), {
      said: "AgentApiError\n",
      code: 0,
    });
  });
});
