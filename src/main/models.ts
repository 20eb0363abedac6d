import type { Llm } from "../monikers/llm/llm.ts";
import { readModel } from "../monikers/llm/model.ts";
import type { Config } from "./config.ts";

/** Models that are kept open beside the configured one. */
const MOST_OPEN = 8;

/** The language models that this process uses, each opened when it is first asked for. */
export class Models {
  readonly #config: Config;
  readonly #open = new Map<string, Promise<Llm>>();

  constructor(config: Config) {
    this.#config = config;
  }

  /** The model that `provider/model` names, or the configured one; null where none is. */
  async get(named?: string): Promise<Llm | null> {
    const name = named ?? this.#config.EVERSTEP_MODEL;
    if (name === undefined) return null;
    const known = this.#open.get(name);
    if (known) return known;
    const opening = open({ ...this.#config, EVERSTEP_MODEL: name });
    this.#open.set(name, opening);
    opening.catch(() => this.#open.delete(name));
    for (const old of this.#open.keys())
      if (this.#open.size > MOST_OPEN && old !== name && old !== this.#config.EVERSTEP_MODEL) this.#open.delete(old);
    return opening;
  }
}

/** BAML's native part is large: it is loaded only where a model is used. */
async function open(config: Config): Promise<Llm> {
  const model = readModel(config);
  if (!model) throw new TypeError("a model's name was expected");
  const [{ BamlEngine }, { Llm: Model }] = await Promise.all([
    import("../monikers/llm/baml-engine.ts"),
    import("../monikers/llm/llm.ts"),
  ]);
  return new Model(new BamlEngine(model));
}
