import { EverstepError } from "../domain/errors.ts";
import type { SessionOptions } from "../domain/session.ts";
import type { Llm } from "../monikers/llm/llm.ts";
import { type Model, readNamedModel, requireProvider } from "../monikers/llm/model.ts";
import type { ModelParts } from "../monikers/llm/model-calls.ts";
import type { Config } from "./config.ts";

/** The most cached combinations of model, settings and fallbacks. */
const MOST_OPEN = 64;

type Choice = Pick<SessionOptions, "model" | "model_settings" | "fallback_models">;
type Loaded = {
  parts: ModelParts;
  newLlm: (models: readonly [Model, ...Model[]], settings: Choice["model_settings"]) => Llm;
};

/** The language models of this process, by session options. Code that only models need is loaded on first use. */
export class Models {
  readonly #config: Config;
  readonly #open = new Map<string, Llm>();
  #loading: Promise<Loaded> | undefined;
  #loaded: Loaded | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  /** The model for a session with these options; null if neither they nor the configuration name one. */
  for({ model, model_settings, fallback_models }: Choice): Llm | null | Promise<Llm | null> {
    const name = model ?? this.#config.EVERSTEP_MODEL;
    if (name === undefined) return null;
    const key = JSON.stringify([name, model_settings, fallback_models]);
    const cached = this.#open.get(key);
    if (cached) return cached;
    const setting = model === undefined ? "EVERSTEP_MODEL=" : "";
    const models = [
      readNamedModel(name, this.#config, setting),
      ...(fallback_models ?? []).map((one) => readNamedModel(one, this.#config)),
    ];
    const open = ({ newLlm }: Loaded): Llm => {
      const llm = newLlm(models as [Model, ...Model[]], model_settings);
      this.#open.set(key, llm);
      for (const old of this.#open.keys()) if (this.#open.size > MOST_OPEN && old !== key) this.#open.delete(old);
      return llm;
    };
    return this.#loaded ? open(this.#loaded) : this.#load().then(open);
  }

  get default_model(): string | null {
    return this.#config.EVERSTEP_MODEL ?? null;
  }

  /** The date of the catalog's newest price. */
  async pricesAsOf(): Promise<string> {
    return (await this.#load()).parts.prices.as_of;
  }

  /** Why no session can have these options; null if one can. */
  problemOf(options: Choice): { path: string; message: string } | null {
    return problemIn(options, (name) => readNamedModel(name, this.#config));
  }

  async #load(): Promise<Loaded> {
    this.#loading ??= load(this.#config);
    this.#loaded = await this.#loading;
    return this.#loaded;
  }
}

/** The same for a process that runs no steps: only workers have the models' keys; here only the provider can be checked. */
export const unknownModel = (options: Choice): { path: string; message: string } | null =>
  problemIn(options, requireProvider);

function problemIn({ model, fallback_models = [] }: Choice, check: (name: string) => unknown) {
  const named = [
    ["model", model] as const,
    ...fallback_models.map((name, at) => [`fallback_models.${at}`, name] as const),
  ];
  for (const [path, name] of named) {
    try {
      if (name !== undefined) check(name);
    } catch (error) {
      if (error instanceof EverstepError) return { path, message: error.message };
      throw error;
    }
  }
  return null;
}

async function load(config: Config): Promise<Loaded> {
  const [{ Llm: Model }, { ModelCalls }, { Prices }, { ProviderGate }] = await Promise.all([
    import("../monikers/llm/llm.ts"),
    import("../monikers/llm/model-calls.ts"),
    import("../monikers/llm/prices.ts"),
    import("../monikers/llm/provider-gate.ts"),
  ]);
  const parts: ModelParts = {
    gate: new ProviderGate(),
    prices: new Prices(config.EVERSTEP_PRICES),
    limits: {
      first_token_ms: config.EVERSTEP_MODEL_FIRST_TOKEN_S * 1000,
      reply_ms: config.EVERSTEP_MODEL_REPLY_S * 1000,
    },
    context_window: config.EVERSTEP_CONTEXT_WINDOW,
  };
  return { parts, newLlm: (models, settings = {}) => new Model(new ModelCalls(models, settings, parts)) };
}
