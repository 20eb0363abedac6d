import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { AgentApi, AgentBusyError } from "../../src/agent-api/agent-api.ts";
import type { ServerFrame } from "../../src/agent-api/messages.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { SeedAgent } from "./seed-agent.ts";
import { READY, StandInAgent, silentServer } from "./stand-in-agent.ts";

const CONNECT_LIMIT_MS = 5000;
const isAboutTheLimit = (ms: number): boolean => ms > CONNECT_LIMIT_MS - 100 && ms < CONNECT_LIMIT_MS * 2;

describe("the connection of AgentApi", { concurrency: true }, () => {
  test("gives up after five seconds on a server that never answers", TIMEOUT, async () => {
    await using silent = await silentServer();
    const api = new AgentApi("a", `ws://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
    const started = performance.now();
    await assert.rejects(api.connect(), { name: "AgentApiError", code: "timeout" });
    assert.ok(isAboutTheLimit(performance.now() - started), `${performance.now() - started} ms`);
    await api.close();
  });

  test(
    "gives up after five seconds on an agent that is never ready, and does not retry by itself",
    TIMEOUT,
    async () => {
      await using agent = await StandInAgent.open(null);
      const api = new AgentApi("a", agent.url);
      const started = performance.now();
      await assert.rejects(api.connect(), { name: "AgentApiError", code: "timeout" });
      assert.ok(isAboutTheLimit(performance.now() - started), `${performance.now() - started} ms`);
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.equal(agent.connections.length, 1);
    },
  );

  test("can be requested again after a failure, and is a single connection", TIMEOUT, async () => {
    const first = await StandInAgent.open();
    const { port, url } = first;
    await first[Symbol.asyncDispose]();
    const api = new AgentApi("a", url);
    await assert.rejects(api.connect(), { name: "AgentApiError", code: "disconnected" });
    await using agent = await StandInAgent.open(READY, port);
    await api.connect();
    await api.connect();
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(agent.connections.length, 1);
    await api.close();
  });

  test("is retried with growing delays, which start over after a success", TIMEOUT, async () => {
    const first = await StandInAgent.open();
    const { port, url } = first;
    let lost = 0;
    const api = new AgentApi("a", url, { on_disconnect: () => void lost++ });
    await api.connect();
    await first[Symbol.asyncDispose]();
    // Accepts connections and closes them before the handshake.
    const refusing = await StandInAgent.open(null, port);
    await refusing.until(() => (refusing.connections.at(-1)?.socket.close(), refusing.connections.length >= 6));
    const times = refusing.connections.map(({ at }) => at);
    const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    const sum = (list: number[]): number => list.reduce((total, ms) => total + ms, 0);
    assert.ok(sum(waits.slice(3)) > sum(waits.slice(0, 2)), waits.join());
    assert.ok(
      waits.every((ms) => ms >= 45),
      `no wait is none: ${waits.join()}`,
    );
    await refusing[Symbol.asyncDispose]();
    await using agent = await StandInAgent.open(READY, port);
    await agent.until(() => agent.connections.length === 1);
    const dropped = performance.now();
    agent.connections[0]?.socket.terminate();
    await agent.until(() => agent.connections.length === 2);
    assert.ok((agent.connections[1]?.at ?? 0) - dropped < 2000, "the wait is short again");
    assert.equal(lost, 2, "it was told of each connection that had stood");
    await api.close();
  });

  test("works with an agent that names neither its session nor the questions it answers", TIMEOUT, async () => {
    await using agent = await SeedAgent.open();
    const orphans: ServerFrame[] = [];
    const api = new AgentApi("a", agent.ws_url, { callback: (frame) => void orphans.push(frame) });
    await api.connect();
    const answerTo = async (text: string): Promise<string> => {
      let answer = "";
      for await (const chunk of api.sendMessage(text)) answer += chunk;
      return answer;
    };
    assert.deepEqual([api.isConnected, api.session_id], [true, null]);
    for (const text of ["one", "two words"]) assert.equal(await answerTo(text), `You said: ${text}`);
    assert.equal(api.last_tokens_used, 7);
    await assert.rejects(answerTo("fail"), { name: "AgentApiError", code: "agent_error", message: "out of order" });
    assert.equal(await answerTo("again"), "You said: again");
    assert.deepEqual(
      orphans.map(({ type }) => type),
      ["status"],
    );
    await api.close();
  });

  test("ignores unknown frames", TIMEOUT, async () => {
    await using agent = await StandInAgent.open();
    const others: ServerFrame[] = [];
    const api = new AgentApi("a", agent.url, { callback: (frame) => others.push(frame) });
    await api.connect();
    const answer = api.sendMessage("Hi.");
    await agent.until(() => agent.received.length === 1);
    const { request_id = "" } = agent.received[0] ?? {};
    for (const strange of ["not JSON", "{}", '{"type":"event_new","text":"x"}', '{"type":"event_text_chunk"}', "[]"])
      agent.send(strange);
    agent.send({ type: "event_text_chunk", text: "of another", request_id: "another" });
    agent.send({ type: "event_text_chunk", text: "unnamed, " });
    agent.send({ type: "event_text_chunk", text: "mine", request_id });
    agent.send({ type: "event_end", tokens_used: 5, request_id: "another" });
    agent.send({ type: "event_end", tokens_used: 7, request_id });
    const chunks: string[] = [];
    for await (const chunk of answer) chunks.push(chunk);
    assert.deepEqual(chunks, ["unnamed, ", "mine"]);
    assert.equal(api.last_tokens_used, 7);
    assert.deepEqual(
      others.map((frame) => ("text" in frame ? frame.text : frame.type)),
      ["status", "of another", "event_end"],
    );
    await api.close();
  });

  test("is busy until the agent has ended an answer, even if the asker left or never listened", TIMEOUT, async () => {
    await using agent = await StandInAgent.open();
    const ended = Promise.withResolvers<void>();
    const others: ServerFrame[] = [];
    const api = new AgentApi("a", agent.url, {
      callback(frame) {
        others.push(frame);
        if (frame.type === "event_end") ended.resolve();
      },
    });
    await api.connect();
    const answer = api.sendMessage("One.");
    await agent.until(() => agent.received.length === 1);
    agent.send({ type: "event_text_chunk", text: "a", request_id: agent.received[0]?.request_id });
    for await (const chunk of answer) {
      assert.equal(chunk, "a");
      break;
    }
    assert.throws(() => api.sendMessage("Two."), AgentBusyError);
    agent.send({ type: "event_text_chunk", text: "b", request_id: agent.received[0]?.request_id });
    agent.send({ type: "event_end", tokens_used: 3, request_id: agent.received[0]?.request_id });
    await ended.promise;
    assert.deepEqual(
      others.map(({ type }) => type),
      ["status", "event_text_chunk", "event_end"],
      "nobody else wants them",
    );
    const unheard = api.sendMessage("Three.");
    await agent.until(() => agent.received.length === 2);
    const { request_id = "" } = agent.received[1] ?? {};
    agent.send({ type: "event_text_chunk", text: "c", request_id });
    agent.send({ type: "event_end", tokens_used: 3, request_id });
    agent.send({ type: "event_end", tokens_used: 0 });
    while (others.length < 4) await new Promise((resolve) => setImmediate(resolve));
    const four = api.sendMessage("Four.");
    assert.deepEqual(await unheard.next(), { done: false, value: "c" }, "it can still be read");
    await agent.until(() => agent.received.length === 3);
    await api.close();
    await assert.rejects(four.next(), { code: "closed" });
  });

  test("closes in time even if the agent does not respond to the close", TIMEOUT, async () => {
    await using agent = await StandInAgent.open();
    const api = new AgentApi("a", agent.url);
    await api.connect();
    agent.connections[0]?.socket.pause();
    const started = performance.now();
    await api.close();
    assert.ok(performance.now() - started < 10_000, `${performance.now() - started} ms`);
  });
});
