import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import { BamlEngine, type EngineLimits } from "../../src/monikers/llm/baml-engine.ts";
import { Llm } from "../../src/monikers/llm/llm.ts";
import { type Model, readModel } from "../../src/monikers/llm/model.ts";
import type { StepNews } from "../../src/monikers/moniker.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import { World, type WorldOptions } from "../runtime/runtime-fixture.ts";
import { ModelServer } from "./model-server.ts";
import type { WireFormatName } from "./wire-formats.ts";

/** A test that waits longer than this, in milliseconds, waits for something that never comes. */
export const TIMEOUT = { timeout: 180_000 };
export const FORMATS: readonly WireFormatName[] = ["openai", "anthropic"];
export const KEY = "sk-test-0123456789";

/** The model as the environment would name it, at the test's own provider. */
export function modelAt(server: ModelServer, format: WireFormatName = "openai", key = KEY): Model {
  const model = readModel(
    format === "openai"
      ? { EVERSTEP_MODEL: "openai/test", OPENAI_BASE_URL: server.url, OPENAI_API_KEY: key }
      : { EVERSTEP_MODEL: "anthropic/test", ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: key },
  );
  return model ?? assert.fail("the environment names a model");
}

/** One provider for the tests of a `describe`; each test begins with an empty plan. */
export function sharedModelServer(): () => ModelServer {
  let server: ModelServer | undefined;
  before(async () => {
    server = await ModelServer.open();
  });
  beforeEach(() => server?.clear());
  after(async () => server?.[Symbol.asyncDispose]());
  return () => server ?? assert.fail("the provider is opened before the tests run");
}

export type LlmWorldOptions = WorldOptions & { format?: WireFormatName; limits?: Partial<EngineLimits> };

export type LlmWorld = World & { restartWithModel(): Promise<number> };

/** One runtime for the tests of a `describe`, its monikers with the provider's model, or offline where there is none. */
export function sharedLlmWorld(server: (() => ModelServer) | null, options: LlmWorldOptions = {}): () => LlmWorld {
  const { format, limits, ...rest } = options;
  let world: LlmWorld | undefined;
  before(async () => {
    const llm = server && new Llm(new BamlEngine(modelAt(server(), format), limits));
    const opened = await World.open(embeddedHome, { llm, ...rest });
    world = Object.assign(opened, { restartWithModel: () => opened.restart({ llm, ...rest }) });
  });
  after(async () => world?.[Symbol.asyncDispose]());
  return () => world ?? assert.fail("the world is opened before the tests run");
}

/** What a step would listen with: keeps what is told, and can cut the call short. */
export class Listener {
  readonly news: StepNews[] = [];
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly emit = (news: StepNews): void => void this.news.push(news);

  get text(): string {
    return this.news.map((one) => (one.kind === "delta" ? one.text : "")).join("");
  }

  get usage(): { tokens: number; estimated: boolean | undefined }[] {
    return this.news.flatMap((one) => (one.kind === "usage" ? [{ tokens: one.tokens, estimated: one.estimated }] : []));
  }
}
