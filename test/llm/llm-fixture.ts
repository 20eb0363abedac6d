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
import type { StepProgress } from "../../src/monikers/moniker.ts";
import { embeddedHome } from "../runtime/embedded-home.ts";
import { World, type WorldOptions } from "../runtime/runtime-fixture.ts";
import { ModelServer } from "./model-server.ts";
import type { WireFormatName } from "./wire-formats.ts";

/** A test that takes longer than this, in milliseconds, is stuck. */
export const TIMEOUT = { timeout: 180_000 };
/** The formats in which model-generated steps are tested; turns are tested in all. */
export const FORMATS = ["openai", "anthropic"] as const satisfies WireFormatName[];
export const KEY = "sk-test-0123456789";

/** The model as configured by the environment, at the test's own provider. */
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

/** A model as a session has it, with its own gate. */
export function newLlm(models: Model | [Model, ...Model[]], { limits, settings = {}, parts }: NewLlm = {}): Llm {
  const shared = { gate: new ProviderGate(), prices: new Prices(), limits: { ...LIMITS, ...limits }, ...parts };
  return new Llm(new ModelCalls(Array.isArray(models) ? models : [models], settings, shared));
}

/** One provider for the tests of a `describe`; each test starts with an empty plan. */
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

/** One runtime for the tests of a `describe`; its monikers use the provider's model, or none if there is no provider. */
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

/** The listener of a step: keeps what is emitted, and can abort the call. */
export class Listener {
  readonly news: StepProgress[] = [];
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly emit = (news: StepProgress): void => {
    this.news.push(news);
    this.#wake();
  };
  #wake = () => {};

  /** Resolves when the text contains these words. */
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
