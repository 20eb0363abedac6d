import { readFileSync } from "node:fs";
import { anthropicModels } from "tokenlens/providers/anthropic";
import { azureModels } from "tokenlens/providers/azure";
import { googleModels } from "tokenlens/providers/google";
import { openaiModels } from "tokenlens/providers/openai";
import { openrouterModels } from "tokenlens/providers/openrouter";
import { z } from "zod";
import { EverstepError } from "../../domain/errors.ts";
import type { ModelUsage } from "./model-usage.ts";

/** Dollars for a million tokens. */
const priceSchema = z.object({
  input: z.number().min(0),
  output: z.number().min(0),
  /** Read from the provider's cache; the price of `input` where it is absent. */
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

/** Models as the catalog lists them. What Azure runs costs what OpenAI asks for, where the catalog says nothing else. */
const LISTS: Readonly<Record<string, ModelList>> = {
  openai: openaiModels.models,
  anthropic: anthropicModels.models,
  google: googleModels.models,
  azure: { ...(openaiModels.models as ModelList), ...(azureModels.models as ModelList) },
  openrouter: openrouterModels.models,
};

const DEFAULT_CONTEXT_WINDOW = 128_000;
const MILLION = 1_000_000;

/** What models cost and how much they take in: from a catalog that ages, and from a file of people's own prices, which comes first. */
export class Prices {
  readonly #own: Readonly<Record<string, Price>>;

  /** `path` names the file of own prices. */
  constructor(path?: string) {
    this.#own = path === undefined ? {} : readPrices(path);
  }

  /** The day of the catalog's newest entry: prices that changed later are not in it. */
  get as_of(): string {
    const days = Object.values(LISTS).flatMap((list) =>
      Object.values(list).map(({ last_updated = "" }) => last_updated),
    );
    return days.reduce((newest, day) => (day > newest ? day : newest), "");
  }

  /** Null where no price is known. */
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

  /** Tokens that a model takes in and writes in all. */
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

/** A model by its whole name, or without the date or the word at its end. */
function listed(name: string): ListedModel | undefined {
  const slash = name.indexOf("/");
  const provider = name.slice(0, slash);
  const list = Object.hasOwn(LISTS, provider) ? LISTS[provider] : undefined;
  if (!list) return undefined;
  const id = name.slice(slash + 1);
  const plain = id.replace(/(?:-latest|-\d{4}-?\d{2}-?\d{2}|@\d{8})$/, "");
  const dated = Object.keys(list).find((key) => key.replace(/-\d{8}$/, "") === plain);
  const found = [id, plain, dated].find((key) => key !== undefined && Object.hasOwn(list, key));
  return found === undefined ? undefined : list[found];
}

function readPrices(path: string): Record<string, Price> {
  const refuse = (why: string, cause?: unknown) =>
    new EverstepError(
      "config_invalid",
      `EVERSTEP_PRICES=${path}: ${why}`,
      'it is a JSON file like {"openai/gpt-5": {"input": 1.25, "output": 10}}, in dollars for a million tokens',
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
