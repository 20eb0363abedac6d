import { readFileSync } from "node:fs";
import { anthropicModels } from "tokenlens/providers/anthropic";
import { azureModels } from "tokenlens/providers/azure";
import { googleModels } from "tokenlens/providers/google";
import { openaiModels } from "tokenlens/providers/openai";
import { openrouterModels } from "tokenlens/providers/openrouter";
import { z } from "zod";
import { EverstepError } from "../../domain/errors.ts";
import type { ModelUsage } from "./model-usage.ts";

/** Dollars per million tokens. */
const priceSchema = z.object({
  input: z.number().min(0),
  output: z.number().min(0),
  /** Read from the provider's cache; defaults to the price of `input`. */
  cache_read: z.number().min(0).optional(),
  cache_write: z.number().min(0).optional(),
});
type Price = z.infer<typeof priceSchema>;
const priceFileSchema = z.record(z.string().regex(/^[^/\s]+\/\S+$/, "provider/model is expected"), priceSchema);

type ListedModel = {
  last_updated?: string;
  limit?: { context?: number };
  cost?: { input?: number; output?: number; cache_read?: number; cache_write?: number };
};
type ModelList = Readonly<Record<string, ListedModel>>;

/** Models as the catalog lists them. Azure models cost the same as OpenAI's unless the catalog says otherwise. */
const LISTS: Readonly<Record<string, ModelList>> = {
  openai: openaiModels.models,
  anthropic: anthropicModels.models,
  google: googleModels.models,
  azure: { ...(openaiModels.models as ModelList), ...(azureModels.models as ModelList) },
  openrouter: openrouterModels.models,
};

const DEFAULT_CONTEXT_WINDOW = 128_000;
const MILLION = 1_000_000;

/** Model prices and context windows: from the user's own price file first, then from a built-in catalog, which ages. */
export class Prices {
  readonly #own: Readonly<Record<string, Price>>;

  /** `path`: the file with the user's own prices. */
  constructor(path?: string) {
    this.#own = path === undefined ? {} : readPrices(path);
  }

  /** The date of the catalog's newest entry; later price changes are missing. */
  get as_of(): string {
    const days = Object.values(LISTS).flatMap((list) =>
      Object.values(list).map(({ last_updated = "" }) => last_updated),
    );
    return days.reduce((newest, day) => (day > newest ? day : newest), "");
  }

  /** Null if the price is unknown. */
  costOf(model: string, usage: ModelUsage): number | null {
    const own = Object.hasOwn(this.#own, model) ? this.#own[model] : undefined;
    if (!own && usage.cost_usd !== undefined) return usage.cost_usd;
    const price = own ?? listedPrice(model);
    if (!price) return null;
    const { input_tokens, output_tokens, cached_tokens, cache_write_tokens } = usage;
    const plain = Math.max(0, input_tokens - cached_tokens - cache_write_tokens);
    const dollars =
      plain * price.input +
      cached_tokens * (price.cache_read ?? price.input) +
      cache_write_tokens * (price.cache_write ?? price.input) +
      output_tokens * price.output;
    return dollars / MILLION;
  }

  /** The model's context window in tokens, input and output together. */
  contextWindow(model: string): number {
    return listed(model)?.limit?.context || DEFAULT_CONTEXT_WINDOW;
  }
}

function listedPrice(model: string): Price | null {
  const { input, output, cache_read, cache_write } = listed(model)?.cost ?? {};
  if (input === undefined || output === undefined) return null;
  return {
    input,
    output,
    ...(cache_read === undefined ? {} : { cache_read }),
    ...(cache_write === undefined ? {} : { cache_write }),
  };
}

/** Looks up a model by its full name, or without the date or suffix at its end. */
function listed(name: string): ListedModel | undefined {
  const slash = name.indexOf("/");
  const provider = name.slice(0, slash);
  const list = Object.hasOwn(LISTS, provider) ? LISTS[provider] : undefined;
  if (!list) return undefined;
  const id = name.slice(slash + 1);
  const plain = id.replace(/(?:-latest|-\d{4}-?\d{2}-?\d{2}|@\d{8})$/, "");
  const dated = Object.keys(list).find((key) => key.replace(/-\d{8}$/, "") === plain);
  const match = [id, plain, dated].find((key) => key !== undefined && Object.hasOwn(list, key));
  return match === undefined ? undefined : list[match];
}

function readPrices(path: string): Record<string, Price> {
  const refuse = (why: string, cause?: unknown) =>
    new EverstepError(
      "config_invalid",
      `EVERSTEP_PRICES=${path}: ${why}`,
      'it is a JSON file like {"openai/gpt-5": {"input": 1.25, "output": 10}}, in dollars per million tokens',
      cause,
    );
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw refuse((error as Error).message, error);
  }
  const parsed = priceFileSchema.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refuse(`${issue?.path.join(".")}: ${issue?.message}`);
}
