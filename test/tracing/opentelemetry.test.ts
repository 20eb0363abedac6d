import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { modelEnvironment } from "../agent-ws/model-environment.ts";
import { ModelServer, reply, turning } from "../llm/model-server.ts";
import { MonikerFiles } from "../monikers/moniker-files.ts";
import { JSON_BODY, pathOf, read, SHAPES } from "../server/api.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import type { Environment } from "../server/spawn-everstep.ts";
import { World } from "../server/world.ts";
import { OtlpReceiver, type ReceivedSpan } from "./otlp-receiver.ts";

const CALLER = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331" };
const TRACEPARENT = `00-${CALLER.trace_id}-${CALLER.span_id}-01`;
const SECRET = "the-secret-of-the-task";
const ANSWER = "the-secret-of-the-answer";
const SESSION = "gen_ai.conversation.id";

/** A server that sends its spans to a receiver. */
class TracedWorld implements AsyncDisposable {
  readonly receiver: OtlpReceiver;
  readonly world: World;

  private constructor(receiver: OtlpReceiver, world: World) {
    this.receiver = receiver;
    this.world = world;
  }

  static async open(more: Environment = {}): Promise<TracedWorld> {
    const receiver = await OtlpReceiver.open();
    const server = await ServerProcess.start({ ...receiver.environment, ...more });
    return new TracedWorld(receiver, await World.of(server));
  }

  get server(): ServerProcess {
    return this.world.server;
  }

  /** Sends a request as part of the caller's trace. */
  async post(path: string, body: JsonObject, traceparent = TRACEPARENT) {
    const answer = await this.world.api.send("POST", path, JSON.stringify(body), { ...JSON_BODY, traceparent });
    return read(answer, 202, SHAPES.accepted);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.world.close();
    await this.server[Symbol.asyncDispose]();
    await this.receiver[Symbol.asyncDispose]();
  }
}

const isChildOf = (span: ReceivedSpan, parent: ReceivedSpan): void => {
  assert.equal(span.trace_id, parent.trace_id, `${span.name} is in the trace of ${parent.name}`);
  assert.equal(span.parent, parent.span_id, `${span.name} is below ${parent.name}`);
};

/** An agent that calls a tool and then replies. Resolves with the span of its turn and everything below it. */
async function runAgent(traced: TracedWorld, model: ModelServer) {
  model.will(turning({ calls: [{ id: "call_1", name: "time__now", args: "{}" }] }), reply(ANSWER));
  const body = { agent_id: "worker", moniker: "agent", params: { task: SECRET } };
  const { session_id } = await traced.post("/api/agents", body);
  await traced.world.status(session_id, "done");
  return { session_id, turn: await traced.receiver.span("invoke_agent worker", session_id) };
}

describe("OpenTelemetry", TIMEOUT, () => {
  test("a turn of an agent is in the caller's trace, with its steps, calls and commits below it", async () => {
    await using model = await ModelServer.open();
    await using traced = await TracedWorld.open(modelEnvironment(model));
    const { receiver } = traced;
    const { session_id, turn } = await runAgent(traced, model);

    const request = await receiver.span("submit agent_create", session_id);
    assert.deepEqual({ trace_id: request.trace_id, span_id: request.parent }, CALLER);
    assert.equal(request.kind, "producer");
    isChildOf(turn, request);
    assert.equal(turn.kind, "internal");
    assert.equal(turn.status, "unset");
    assert.partialDeepStrictEqual(turn.attributes, {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": "worker",
      "gen_ai.agent.name": "worker",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "test",
      "everstep.session.status": "done",
    });

    const steps = receiver.childrenOf(turn).toSorted((a, b) => a.start - b.start);
    assert.deepEqual(
      steps.map(({ name, attributes }) => [name, attributes["everstep.iteration"]]),
      [
        ["step agent", 0],
        ["step agent", 1],
        ["step agent", 2],
      ],
    );
    const below = steps.map((step) =>
      receiver
        .childrenOf(step)
        .map(({ name }) => name)
        .toSorted(),
    );
    assert.deepEqual(below, [
      ["chat test", "commit"],
      ["commit", "execute_tool time/now"],
      ["chat test", "commit"],
    ]);
    const chats = receiver.of(session_id, "chat test").toSorted((a, b) => a.start - b.start);
    for (const chat of chats) {
      assert.equal(chat.kind, "client");
      assert.partialDeepStrictEqual(chat.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
      });
      assert.ok(Number(chat.attributes["gen_ai.usage.input_tokens"]) > 0);
      assert.ok(Number(chat.attributes["gen_ai.usage.output_tokens"]) > 0);
    }
    assert.deepEqual(
      chats.map(({ attributes }) => attributes["gen_ai.response.finish_reasons"]),
      [["tool_call"], ["stop"]],
    );
    const used = (name: string) => chats.reduce((sum, { attributes }) => sum + Number(attributes[name]), 0);
    for (const name of ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"])
      assert.equal(turn.attributes[name], used(name));
    const [tool] = receiver.named("execute_tool time/now");
    assert.partialDeepStrictEqual(tool?.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "time/now",
      [SESSION]: session_id,
    });
    for (const span of receiver.spans) assert.ok(span.end >= span.start, `${span.name} ends after it began`);
    for (const child of [...steps, ...chats]) assert.ok(child.start >= turn.start - 1 && child.end <= turn.end + 1);
    for (const text of [SECRET, ANSWER]) assert.ok(!receiver.wasSent(text), "nothing that was said is sent");
  });

  test("contents are sent only if that is requested", async () => {
    await using model = await ModelServer.open();
    const capture = { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" };
    await using traced = await TracedWorld.open({ ...modelEnvironment(model), ...capture });
    const { session_id, turn } = await runAgent(traced, model);
    const [first, second] = traced.receiver.of(session_id, "chat test").toSorted((a, b) => a.start - b.start);
    const messages = (span: ReceivedSpan | undefined, name: string): unknown =>
      JSON.parse(String(span?.attributes[`gen_ai.${name}`]));
    assert.match(JSON.stringify(messages(first, "input.messages")), new RegExp(SECRET));
    assert.partialDeepStrictEqual(messages(first, "output.messages"), [
      { role: "assistant", parts: [{ type: "tool_call", name: "time/now" }], finish_reason: "tool_call" },
    ]);
    assert.partialDeepStrictEqual(messages(second, "output.messages"), [
      { role: "assistant", parts: [{ type: "text", content: ANSWER }], finish_reason: "stop" },
    ]);
    assert.match(JSON.stringify(messages(first, "system_instructions")), /agent/);
    const [tool] = traced.receiver.named("execute_tool time/now");
    assert.equal(tool?.attributes["gen_ai.tool.call.arguments"], "{}");
    assert.match(String(tool?.attributes["gen_ai.tool.call.result"]), /^20\d\d-/);
    assert.match(JSON.stringify(messages(turn, "output.messages")), new RegExp(ANSWER));
  });

  test("a turn that SIGKILL cut in two is one span, with the steps of both processes below it", async () => {
    await using traced = await TracedWorld.open();
    const { receiver, server } = traced;
    const body = { agent_id: "counter", moniker: "count", params: { to: 8, delay_ms: 100 } };
    const { session_id } = await traced.post("/api/agents", body);
    await receiver.until("two steps", () => receiver.of(session_id, "step count").length >= 2);
    await server.kill();
    const killed_at = Date.now();
    const before = receiver.of(session_id, "step count").length;
    assert.equal(receiver.of(session_id, "invoke_agent counter").length, 0, "it is under way");
    await server.start();
    const turn = await receiver.span("invoke_agent counter", session_id);
    const steps = receiver.of(session_id, "step count");
    assert.ok(steps.length > before && before >= 2);
    for (const step of steps) isChildOf(step, turn);
    assert.ok(turn.start < killed_at, "it began before the process died");
    assert.ok(steps.every(({ end }) => end <= turn.end + 1));
    assert.equal(turn.trace_id, CALLER.trace_id);
    await server.stop();
    assert.equal(receiver.of(session_id, "invoke_agent counter").length, 1);
    const iterations = steps.map(({ attributes }) => attributes["everstep.iteration"]);
    assert.equal(new Set(iterations).size, iterations.length, "a committed step ran once");
  });

  test("a turn that an orderly stop cut in two is one span as well", async () => {
    await using traced = await TracedWorld.open();
    const { receiver, server } = traced;
    const body = { agent_id: "counter", moniker: "count", params: { to: 8, delay_ms: 100 } };
    const { session_id } = await traced.post("/api/agents", body);
    await receiver.until("a step", () => receiver.of(session_id, "step count").length >= 1);
    await server.stop();
    const turn = await receiver.span("invoke_agent counter", session_id);
    await server.start();
    await receiver.until("the last step", () =>
      receiver.of(session_id, "step count").some(({ attributes }) => attributes["everstep.iteration"] === 8),
    );
    await server.stop();
    for (const step of receiver.of(session_id, "step count")) isChildOf(step, turn);
    assert.equal(receiver.of(session_id, "invoke_agent counter").length, 1);
  });

  test("a step is linked to the request that brought its guidance, though the server was killed in between", async () => {
    await using files = await MonikerFiles.with({ "hearer.ts": HEARER });
    await using traced = await TracedWorld.open({ EVERSTEP_MONIKERS: files.folder });
    const { receiver, server, world } = traced;
    const { session_id } = await world.api.create("hearer", { agent_id: "hearer" });
    await world.control(session_id, "pause");
    const { action_id } = await traced.post(pathOf("sessions", session_id, "interrupt"), { guidance: SECRET });
    await world.settled(action_id);
    const request = await receiver.span("submit agent_interrupt", session_id);
    assert.deepEqual({ trace_id: request.trace_id, span_id: request.parent }, CALLER);
    await server.kill();
    await server.start();
    await world.api.post(pathOf("sessions", session_id, "resume"));
    const step = await receiver.span("step hearer", session_id);
    const { trace_id, span_id } = request;
    const attributes = { "everstep.action.id": action_id, "everstep.action.type": "agent_interrupt" };
    assert.deepEqual(step.links, [{ trace_id, span_id, attributes }]);
    isChildOf(step, await receiver.span("invoke_agent hearer", session_id));
    assert.ok(!receiver.wasSent(SECRET));
  });

  test("each piece of guidance starts a turn, in a separate trace", async () => {
    await using files = await MonikerFiles.with({ "hearer.ts": HEARER });
    await using traced = await TracedWorld.open({ EVERSTEP_MONIKERS: files.folder });
    const { receiver, world } = traced;
    const { session_id } = await world.api.create("hearer", { agent_id: "hearer" });
    for (const guidance of ["one", "two"]) {
      const { action_id } = await traced.post(pathOf("sessions", session_id, "interrupt"), { guidance });
      await world.consumed(action_id);
    }
    const turns = await receiver.until("both turns", () => {
      const all = receiver.of(session_id, "invoke_agent hearer");
      return all.length === 2 && all;
    });
    assert.equal(new Set(turns.map(({ trace_id }) => trace_id)).size, 2);
    for (const turn of turns) assert.equal(receiver.childrenOf(turn).length, 1);
  });

  test("a session that a step starts is below that step, and its report leads back to it", async () => {
    await using files = await MonikerFiles.with({ "spawner.ts": SPAWNER });
    await using traced = await TracedWorld.open({ EVERSTEP_MONIKERS: files.folder });
    const { receiver } = traced;
    const { session_id } = await traced.post("/api/agents", { agent_id: "parent", moniker: "spawner" });
    const child = await receiver.until("the child's turn", () => receiver.named("invoke_agent child")[0]);
    const steps = await receiver.until("both steps of the parent", () => {
      const all = receiver.of(session_id, "step spawner");
      return all.length === 2 && all.toSorted((a, b) => a.start - b.start);
    });
    const [spawning, hearing] = steps as [ReceivedSpan, ReceivedSpan];
    isChildOf(child, spawning);
    assert.equal(child.trace_id, CALLER.trace_id);
    const [last] = receiver
      .childrenOf(child)
      .filter(({ name }) => name === "step count")
      .toSorted((a, b) => b.start - a.start);
    assert.deepEqual(
      hearing.links.map(({ trace_id, span_id }) => ({ trace_id, span_id })),
      [{ trace_id: last?.trace_id, span_id: last?.span_id }],
    );
  });

  test("an attempt that failed is a span with the kind of its error, and without its words", async () => {
    await using traced = await TracedWorld.open();
    const { receiver } = traced;
    const retry = { max_attempts: 2, backoff_ms: 1 };
    const body = { agent_id: "failing", moniker: "count", params: { to: 3, fail_at: 1 }, options: { retry } };
    const { session_id } = await traced.post("/api/agents", body);
    const turn = await receiver.span("invoke_agent failing", session_id);
    assert.deepEqual([turn.status, turn.attributes["error.type"]], ["error", "Error"]);
    const steps = receiver.childrenOf(turn).toSorted((a, b) => a.start - b.start);
    assert.deepEqual(
      steps.map(({ status, attributes }) => [
        status,
        attributes["everstep.iteration"],
        attributes["everstep.step.attempt"],
      ]),
      [
        ["unset", 0, 1],
        ["error", 1, 1],
        ["error", 1, 2],
      ],
    );
    assert.ok(!receiver.wasSent("told to fail"));
  });

  test("headers, the service's name and its attributes are those of the environment", async () => {
    await using traced = await TracedWorld.open({
      OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic cGs6c2s9PQ==,x-langfuse-ingestion-version=4",
      OTEL_SERVICE_NAME: "agents",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=a%20b",
    });
    const { session_id } = await traced.world.api.create("count", { params: { to: 0 } });
    const { resource } = await traced.receiver.span("step count", session_id);
    assert.partialDeepStrictEqual(resource, {
      "service.name": "agents",
      "deployment.environment.name": "test",
      team: "a b",
    });
    assert.partialDeepStrictEqual(traced.receiver.headers[0], {
      authorization: "Basic cGs6c2s9PQ==",
      "x-langfuse-ingestion-version": "4",
    });
  });
});

const HEARER = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "hearer", kind: "reactive", description: "Hears.", params: z.object({}),
  async step({ step, state }) { return { step, next_step: step, state, done: false, text: "heard" }; },
});
`;

const SPAWNER = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "spawner", kind: "finite", description: "Starts a session and waits for its end.", params: z.object({}),
  async step({ step, state, guidance }) {
    if (guidance) return { step, next_step: step, state, done: true };
    const actions = [{ action_type: "agent_create", agent_id: "child", moniker: "count", params: { to: 1 } }];
    return { step, next_step: step, state, done: false, wait: {}, actions };
  },
});
`;
