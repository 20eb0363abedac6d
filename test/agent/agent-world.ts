import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import { z } from "zod";
import { GuidanceLimit } from "../../src/actions/guidance-limit.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Session, SessionOptions } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { newToolRegistry } from "../../src/main/tools.ts";
import type { ToolFactory } from "../../src/tools/tool.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { ZodToolServer, zodTool } from "../../src/tools/zod-tool-server.ts";
import { modelAt, newLlm } from "../llm/llm-fixture.ts";
import { type Answer, ModelServer } from "../llm/model-server.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import { World } from "../runtime/runtime-fixture.ts";

/**
 * Tools controlled by a test: `test/pay` must not run twice without consent, `test/drop` is destructive, `test/look` only
 * reads.
 */
export class TestTools {
  readonly calls: [tool: string, args: JsonValue][] = [];
  /** What the next call of each tool does before it returns. */
  readonly before = new Map<string, () => Promise<void>>();

  readonly all = [
    this.#tool("pay", {}),
    this.#tool("drop", { destructive: true }),
    this.#tool("look", { read_only: true }),
  ];
  readonly server = new ZodToolServer("test", this.all);

  #tool(name: string, flags: { destructive?: boolean; read_only?: boolean }) {
    return zodTool({
      name,
      description: "Of a test.",
      input: z.looseObject({}),
      ...flags,
      run: async (args) => {
        this.calls.push([name, args as JsonObject]);
        await this.before.get(name)?.();
        return `${name} did ${JSON.stringify(args)}`;
      },
    });
  }
}

type Options = { llm: () => ReturnType<typeof newLlm>; tools: ToolFactory };

/** A runtime with the test's own model, the built-in tools, and the test's tools. */
export class AgentWorld {
  readonly world: World;
  readonly model: ModelServer;
  readonly tools: TestTools;
  readonly #options: Options;

  private constructor(world: World, model: ModelServer, tools: TestTools, options: Options) {
    this.world = world;
    this.model = model;
    this.tools = tools;
    this.#options = options;
  }

  static async open(): Promise<AgentWorld> {
    const model = await ModelServer.open();
    const tools = new TestTools();
    const llm = newLlm(modelAt(model));
    const opened: { world?: World } = {};
    const own = new ToolRegistry({ workspace: "", servers: [tools.server] });
    const options = {
      llm: () => llm,
      tools: (step: Parameters<ToolFactory>[0]) => {
        const { store, catalog, workspace } = opened.world ?? assert.fail("the world is open");
        const builtIn = newToolRegistry({ store, catalog, limit: new GuidanceLimit(store), workspace }).forStep(step);
        const others = own.forStep(step);
        return {
          workspace: builtIn.workspace,
          skills: () => builtIn.skills(),
          list: async () => [...(await builtIn.list()), ...(await others.list())],
          call: (name: string, args: JsonObject, answered?: { answer: JsonValue; resume: JsonValue }) =>
            (name.startsWith("test/") ? others : builtIn).call(name, args, answered),
        };
      },
    };
    opened.world = await World.open(embeddedHome, options);
    return new AgentWorld(opened.world, model, tools, options);
  }

  restart(): Promise<number> {
    return this.world.restart(this.#options);
  }

  async close(): Promise<void> {
    await this.world[Symbol.asyncDispose]();
    await this.model[Symbol.asyncDispose]();
  }

  agent(task: string, options: SessionOptions = {}): Promise<string> {
    return this.world.create("agent", { params: { task }, options });
  }

  async answer(session_id: string, answer: JsonValue): Promise<void> {
    await this.world.submit({ action_type: "agent_answer", session_id, payload: { answer } });
  }

  /** The session's question, once it asks one. */
  async question(session_id: string): Promise<NonNullable<Session["question"]>> {
    const { question } = await this.world.until(session_id, (session) => session.question !== null);
    return question ?? assert.fail("it asks");
  }

  async tokens(session_id: string): Promise<string[]> {
    return (await this.world.steps(session_id)).map(({ step_token }: Step) => step_token);
  }
}

/** One world for the tests of a `describe`; each test starts with an empty plan. */
export function sharedAgentWorld(): () => AgentWorld {
  let shared: AgentWorld | undefined;
  before(async () => {
    shared = await AgentWorld.open();
  });
  beforeEach(() => {
    shared?.model.clear();
    shared?.tools.before.clear();
    shared?.tools.calls.splice(0);
  });
  after(async () => shared?.close());
  return () => shared ?? assert.fail("the world is opened before the tests run");
}

/** The model calls these tools, given by our names. */
export const calling =
  (...calls: [name: string, args: JsonObject][]): Answer =>
  (call) => {
    const toolNames = call.tools.map(({ name }) => name);
    // Providers do not accept our names as they are.
    const plain = (name: string) => name.replaceAll(/[^a-z]+/gi, "_");
    call.turn({
      calls: calls.map(([name, args], index) => ({
        id: `call-${index}-${Math.random().toString(36).slice(2)}`,
        name: toolNames.find((one) => plain(one) === plain(name)) ?? name,
        args: JSON.stringify(args),
      })),
    });
  };
