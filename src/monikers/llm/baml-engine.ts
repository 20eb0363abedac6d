import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  BamlClientFinishReasonError,
  BamlClientHttpError,
  BamlCtxManager,
  BamlRuntime,
  BamlTimeoutError,
  BamlValidationError,
  ClientRegistry,
  Collector,
  setLogLevel,
  toBamlError,
} from "@boundaryml/baml";
import { z } from "zod";
import type { ModelSettings } from "../../domain/session.ts";
import { StepError } from "../moniker.ts";
import { bamlClient } from "./baml-client.ts";
import { callReport } from "./call-report.ts";
import type { Model } from "./model.ts";
import {
  type Circumstances,
  cancelled,
  cutOff,
  type ModelLimits,
  modelError,
  refused,
  replyTooLong,
} from "./model-errors.ts";
import type { ModelUsage } from "./model-usage.ts";

const PROMPTS = fileURLToPath(new URL("./prompts/", import.meta.url));

type CompletionOptions = {
  signal: AbortSignal;
  settings: ModelSettings;
  limits: ModelLimits;
  /** Receives the whole reply so far, repeatedly. */
  onPartial: (reply: string) => void;
  /** Called once with the call's end and usage. */
  onEnd: (end: { usage: ModelUsage; reply: string; error: StepError | undefined }) => void;
};

/**
 * Wraps BAML: prompts are `.baml` files, providers its adapters. Functions return text, which we parse ourselves, since BAML's
 * typed parsing is quadratic for large states. Retries are up to the runner.
 */
class BamlEngine {
  readonly #runtime: BamlRuntime;
  readonly #contexts: BamlCtxManager;

  constructor() {
    // By default it prints prompts and replies.
    setLogLevel("OFF");
    const files = readdirSync(PROMPTS).filter((name) => name.endsWith(".baml"));
    const sources = Object.fromEntries(files.map((name) => [name, readFileSync(join(PROMPTS, name), "utf8")]));
    this.#runtime = BamlRuntime.fromFiles(PROMPTS, sources, {});
    this.#contexts = new BamlCtxManager(this.#runtime);
  }

  /** The reply to the named prompt. Fails with a `StepError`. */
  async complete(
    model: Model,
    name: string,
    args: Readonly<Record<string, string>>,
    { signal, settings, limits, onPartial, onEnd }: CompletionOptions,
  ): Promise<string> {
    if (signal.aborted) throw cancelled(signal.reason);
    const usage = new Collector("step");
    const silence = new AbortController();
    const stream = this.#runtime.streamFunction(
      name,
      Object.fromEntries(Object.entries(args).map(([key, text]) => [key, withoutDelimiters(text)])),
      undefined,
      this.#contexts.cloneContext(),
      undefined,
      newClients(model, settings, limits),
      [usage],
      {},
      {},
      AbortSignal.any([signal, silence.signal]),
      undefined,
    );
    const timer = setTimeout(() => silence.abort(), limits.first_token_ms);
    stream.onEvent((error, result) => {
      if (error || !result.isOk()) return;
      clearTimeout(timer);
      onPartial(String(result.parsed(true)));
    });
    let reply = "";
    let failure: StepError | undefined;
    try {
      const result = await stream.done(this.#contexts.cloneContext());
      reply = String(result.parsed(false));
    } catch (error) {
      const sent = Object.values(args);
      const exceeded = silence.signal.aborted ? "first_token" : null;
      const circumstances = { model: model.name, key: model.key, sent, limits, exceeded } as const;
      failure = signal.aborted ? cancelled(signal.reason) : toStepError(error, circumstances, usage);
    } finally {
      clearTimeout(timer);
      stream.onEvent(undefined);
    }
    const report = callReport(usage, JSON.stringify(args).length, reply);
    // Not every adapter honours the list of finish reasons.
    if (report.end === "truncated") failure = replyTooLong(model.name);
    if (report.end === "refused") failure = refused(model.name, "");
    if (report.end === "cut") failure ??= cutOff(model.name);
    onEnd({ usage: report.usage, reply, error: failure });
    if (failure) throw failure;
    onPartial(reply);
    return reply;
  }
}

let engine: BamlEngine | undefined;

/** One per process: its native part is large. */
export function bamlEngine(): BamlEngine {
  engine ??= new BamlEngine();
  return engine;
}

/** New for each call: static clients reuse the previous caller's key. */
function newClients(model: Model, settings: ModelSettings, limits: ModelLimits): ClientRegistry {
  const clients = new ClientRegistry();
  const { provider, options } = bamlClient(model, settings);
  clients.addLlmClient("model", provider, {
    ...options,
    finish_reason_deny_list: ["length", "max_tokens"],
    http: {
      connect_timeout_ms: 10_000,
      request_timeout_ms: limits.reply_ms,
      idle_timeout_ms: limits.first_token_ms,
    },
  });
  clients.setPrimary("model");
  return clients;
}

/**
 * BAML marks roles and images in the finished prompt with delimiter words. A text that contains them could pose as the system,
 * or make BAML fetch something.
 */
const withoutDelimiters = (text: string): string => text.replaceAll("MAGIC_STRING_DELIMITER", "MAGIC-STRING-DELIMITER");

const headersSchema = z.record(z.string(), z.string());

/** Classifies an error and decides whether a retry can help. */
function toStepError(thrown: unknown, circumstances: Circumstances, { last }: Collector): StepError {
  const error = toBamlError(thrown);
  const headers = headersSchema.safeParse(last?.calls.at(-1)?.httpResponse?.headers).data;
  if (error instanceof BamlTimeoutError) return modelError({ text: "" }, { ...circumstances, exceeded: "reply" });
  if (error instanceof BamlClientFinishReasonError) return replyTooLong(circumstances.model);
  if (error instanceof BamlValidationError)
    return new StepError("bad_output", "the model's reply cannot be used", { retryable: true });
  if (error instanceof BamlClientHttpError) {
    const { status_code: status, raw_response = "" } = error;
    // Below 100 it is not an HTTP status but the engine's code for a failed connection.
    const isHttp = status >= 100;
    return modelError(
      { status: isHttp ? status : undefined, headers, text: isHttp ? raw_response : "" },
      circumstances,
    );
  }
  return modelError({ headers, text: error.message }, circumstances);
}
