import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import type { ModelSettings } from "../../src/domain/session.ts";
import type { StepCall } from "../../src/domain/step.ts";
import { Llm } from "../../src/monikers/llm/llm.ts";
import { type Model, type ModelEnvironment, readModel } from "../../src/monikers/llm/model.ts";
import { ModelCalls, type ModelParts } from "../../src/monikers/llm/model-calls.ts";
import type { ModelLimits } from "../../src/monikers/llm/model-errors.ts";
import { Prices } from "../../src/monikers/llm/prices.ts";
import { ProviderGate } from "../../src/monikers/llm/provider-gate.ts";
import type { StepNews } from "../../src/monikers/moniker.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import { World, type WorldOptions } from "../runtime/runtime-fixture.ts";
import { ModelServer } from "./model-server.ts";
import type { WireFormatName } from "./wire-formats.ts";

/** A test that waits longer than this, in milliseconds, waits for something that never comes. */
export const TIMEOUT = { timeout: 180_000 };
/** Those that steps by the model alone are tested in; turns are tested in all. */
export const FORMATS = ["openai", "anthropic"] as const satisfies WireFormatName[];
export const KEY = "sk-test-0123456789";

/** The model as the environment would name it, at the test's own provider. */
export function modelAt(server: Pick<ModelServer, "url">, format: WireFormatName = "openai", key = KEY): Model {
  return readModel(environmentOf(server.url, format, key)) ?? assert.fail("the environment names a model");
}

function environmentOf(url: string, format: WireFormatName, key: string): ModelEnvironment {
  switch (format) {
    case "openai":
      return { EVERSTEP_MODEL: "openai/test", OPENAI_BASE_URL: url, OPENAI_API_KEY: key };
    case "responses":
      return { EVERSTEP_MODEL: "openai/o-test", OPENAI_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_API: "responses" };
    case "anthropic":
      return { EVERSTEP_MODEL: "anthropic/test", ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key };
    case "google":
      return { EVERSTEP_MODEL: "google/test", GOOGLE_BASE_URL: url, GOOGLE_API_KEY: key };
  }
  return format satisfies never;
}

export const LIMITS: ModelLimits = { first_token_ms: 60_000, reply_ms: 600_000 };

type NewLlm = { limits?: Partial<ModelLimits>; settings?: ModelSettings; parts?: Partial<ModelParts> };

/** A model as a session has it, with a gate of its own. */
export function newLlm(models: Model | [Model, ...Model[]], { limits, settings = {}, parts }: NewLlm = {}): Llm {
  const shared = { gate: new ProviderGate(), prices: new Prices(), limits: { ...LIMITS, ...limits }, ...parts };
  return new Llm(new ModelCalls(Array.isArray(models) ? models : [models], settings, shared));
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

export type LlmWorldOptions = WorldOptions & { format?: WireFormatName; limits?: Partial<ModelLimits> };

export type LlmWorld = World & { restartWithModel(): Promise<number> };

/** One runtime for the tests of a `describe`, its monikers with the provider's model, or offline where there is none. */
export function sharedLlmWorld(server: (() => ModelServer) | null, options: LlmWorldOptions = {}): () => LlmWorld {
  const { format, limits, ...rest } = options;
  let world: LlmWorld | undefined;
  before(async () => {
    const model = server && newLlm(modelAt(server(), format), limits ? { limits } : {});
    const llm = () => model;
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
  readonly emit = (news: StepNews): void => {
    this.news.push(news);
    this.#wake();
  };
  #wake = () => {};

  /** Resolves once the text has that in it. */
  async heard(words: string): Promise<void> {
    while (!this.text.includes(words)) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  get calls(): StepCall[] {
    return this.news.flatMap((one) => (one.kind === "call" ? [one.call] : []));
  }

  get text(): string {
    return this.news.map((one) => (one.kind === "delta" ? one.text : "")).join("");
  }

  get usage(): { tokens: number; estimated: boolean | undefined }[] {
    return this.news.flatMap((one) => (one.kind === "usage" ? [{ tokens: one.tokens, estimated: one.estimated }] : []));
  }
}
