import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { ModelSettings } from "../../domain/session.ts";
import { type StepContext, StepError } from "../moniker.ts";
import { objectIn } from "./json-reply.ts";
import type { Model } from "./model.ts";
import {
  badOutput,
  type Circumstances,
  cancelled,
  cutOff,
  type ModelLimits,
  modelError,
  refused,
  replyTooLong,
  sdkFailure,
} from "./model-errors.ts";
import { modelPrompt, type ProviderPart, promptTools } from "./model-prompt.ts";
import type { AssistantMessage, ModelMessage, ModelReply, ModelRequest, ToolCall } from "./model-turn.ts";
import type { ModelUsage } from "./model-usage.ts";
import type { Prices } from "./prices.ts";
import type { ProviderGate } from "./provider-gate.ts";
import { openProviderModel, type ProviderModel, providerOptions } from "./provider-models.ts";
import { StreamedTurn } from "./streamed-turn.ts";
import { toolNamer } from "./tool-names.ts";

/** What all models of a process share. */
export type ModelParts = {
  gate: ProviderGate;
  prices: Prices;
  limits: ModelLimits;
  /** Overrides the catalog's context window, in tokens. */
  context_window?: number | undefined;
};

type Reporting = Pick<StepContext, "signal" | "emit">;
export type GenerateCall = Reporting & { onText: (text: string) => void };
export type CompleteCall = Reporting & { onPartial: ((reply: string) => void) | undefined };

/** A successful turn, except that arguments of some calls may not be JSON objects. */
type Turn = ModelReply & { unusable: ToolCall[] };

/** Characters of new messages that are kept with a call. */
const KEPT_CHARACTERS = 40_000;

/**
 * Calls models: the session's model and, if that is unreachable or refuses the request, its fallbacks in order.
 *
 * CALLS-1  Every call that was sent reports its usage and leaves a record, however it ended.
 * CALLS-2  No other model is called once text was emitted: that would be two answers in one. The step fails, and its next
 *          attempt starts with another model (`ProviderGate.inOrder`).
 */
export class ModelCalls {
  readonly model: Model;
  readonly context_window: number;
  readonly #models: readonly Model[];
  readonly #settings: ModelSettings;
  readonly #parts: ModelParts;
  readonly #open = new Map<string, Promise<ProviderModel>>();

  constructor(models: readonly [Model, ...Model[]], settings: ModelSettings, parts: ModelParts) {
    this.#models = models;
    [this.model] = models;
    this.#settings = settings;
    this.#parts = parts;
    this.context_window = parts.context_window ?? parts.prices.contextWindow(this.model.name);
  }

  /** One turn. An empty reply, or arguments that are not a JSON object, get one repair attempt. */
  async generate(request: ModelRequest, call: GenerateCall): Promise<ModelReply> {
    const first = await this.#turn(request, call);
    const isEmpty = first.message.text.trim() === "" && first.message.tool_calls.length === 0;
    if (first.unusable.length === 0 && !isEmpty) return withoutUnusable(first);
    const second = await this.#turn({ ...request, messages: [...request.messages, ...correction(first)] }, call);
    if (second.unusable.length > 0)
      throw badOutput(`the model's arguments for ${second.unusable[0]?.name} are not a JSON object`);
    return joined(first, withoutUnusable(second));
  }

  /** The reply to one of the prompts in `prompts/`, as text. */
  complete(name: string, args: Record<string, string>, { signal, emit, onPartial }: CompleteCall): Promise<string> {
    let hasEmitted = false;
    const emitPartial = (reply: string): void => {
      hasEmitted ||= reply !== "";
      onPartial?.(reply);
    };
    return this.#inTurn(
      async (model) => {
        const { bamlEngine } = await import("./baml-engine.ts");
        const record = this.#recorder(model, emit, { prompt: name, ...args });
        return bamlEngine().complete(model, name, args, {
          signal,
          settings: this.#settings,
          limits: this.#parts.limits,
          onPartial: emitPartial,
          onEnd: ({ usage, reply, error }) =>
            record(usage, reply, { error, finish_reason: error ? undefined : "stop" }),
        });
      },
      () => hasEmitted,
    );
  }

  #turn(request: ModelRequest, call: GenerateCall): Promise<Turn> {
    let hasEmitted = false;
    const onText = (text: string): void => {
      hasEmitted = true;
      call.onText(text);
    };
    return this.#inTurn(
      (model) => this.#turnOf(model, request, { ...call, onText }),
      () => hasEmitted,
    );
  }

  /** The result of the first model that answers. */
  async #inTurn<Result>(ask: (model: Model) => Promise<Result>, hasEmitted: () => boolean): Promise<Result> {
    const { gate } = this.#parts;
    const failures: StepError[] = [];
    for (const model of gate.inOrder(this.#models)) {
      const closed = gate.closedFor(model);
      if (closed) {
        failures.push(closed);
        continue;
      }
      try {
        const result = await ask(model);
        gate.succeeded(model);
        return result;
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        gate.failed(model, error);
        if (hasEmitted() || !mayTryAnother(error)) throw error; // CALLS-2
        failures.push(error);
      }
    }
    throw earliestRetry(failures);
  }

  async #turnOf(model: Model, request: ModelRequest, call: GenerateCall): Promise<Turn> {
    try {
      return await this.#send(model, request, call, true);
    } catch (error) {
      // Data that a provider added to its replies can expire, or belong to another account.
      const isRejected = error instanceof StepError && error.code === "model_rejected";
      if (!isRejected || !hasPartsOf(model, request)) throw error;
      return this.#send(model, request, call, false);
    }
  }

  async #send(model: Model, request: ModelRequest, call: GenerateCall, with_provider_parts: boolean): Promise<Turn> {
    const { limits } = this.#parts;
    const { temperature, max_output_tokens: maxOutputTokens, reasoning } = this.#settings;
    const record = this.#recorder(model, call.emit, () => requestRecord(request));
    const turn = new StreamedTurn(limits, call.onText);
    let reply: Omit<Turn, "usage" | "cost_usd"> | undefined;
    let failure: StepError | undefined;
    try {
      call.signal.throwIfAborted();
      const tools = promptTools(model, request);
      const options = {
        prompt: modelPrompt(model, request, { with_provider_parts }),
        ...(tools.length > 0 ? { tools } : {}),
        ...(temperature === undefined ? {} : { temperature }),
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
        ...(reasoning === undefined ? {} : { reasoning }),
        providerOptions: providerOptions(model),
      };
      await turn.run(await this.#opened(model), options, call.signal);
      reply = readTurn(turn, model, request);
    } catch (error) {
      failure = call.signal.aborted ? cancelled(call.signal.reason) : toStepError(error, turn, model, request, limits);
    }
    const usage = turn.usage(() => charactersOf(request));
    const cost_usd = record(usage, reply ? replyRecord(reply.message) : partialRecord(turn), {
      error: failure,
      finish_reason: finishReason(turn),
    });
    if (!reply) throw failure;
    return { ...reply, usage: reported(usage), cost_usd };
  }

  #opened(model: Model): Promise<ProviderModel> {
    const opening = this.#open.get(model.name) ?? openProviderModel(model);
    this.#open.set(model.name, opening);
    opening.catch(() => this.#open.delete(model.name));
    return opening;
  }

  /** CALLS-1. Returns the cost of the call. */
  #recorder(model: Model, emit: Reporting["emit"], input: JsonValue | (() => JsonValue)) {
    const started = performance.now();
    return (usage: ModelUsage, output: JsonValue, { error, finish_reason }: CallEnd): number | null => {
      const { input_tokens, output_tokens, cached_tokens, estimated } = usage;
      const tokens = input_tokens + output_tokens;
      const cost_usd = tokens === 0 ? null : this.#parts.prices.costOf(model.name, usage);
      const cost = cost_usd === null ? {} : { cost_usd };
      if (tokens > 0) emit({ kind: "usage", tokens, estimated, ...cost });
      const call = {
        kind: "model" as const,
        name: model.name,
        input: typeof input === "function" ? input() : input,
        output,
        ...(tokens > 0 ? { tokens, input_tokens, output_tokens, cached_tokens, estimated } : {}),
        ...cost,
        latency_ms: performance.now() - started,
        ...(error ? { error: `${error.code}: ${error.message}` } : {}),
      };
      emit({ kind: "call", call, span: { finish_reason, error_type: error?.code, settings: this.#settings } });
      return cost_usd;
    };
  }
}

type CallEnd = { error: StepError | undefined; finish_reason: string | undefined };

/** Why the model stopped, in OpenTelemetry's terms; undefined if unknown. */
function finishReason({ finish }: StreamedTurn): string | undefined {
  if (!finish) return undefined;
  return finish.unified === "tool-calls" ? "tool_call" : finish.unified.replace("-", "_");
}

/** Whether another model may succeed. A refusal is an answer. */
const mayTryAnother = ({ code, outage }: StepError): boolean =>
  outage || code === "model_rejected" || code === "model_auth";

/** Of several failures, the one with the earliest retry; if none can be retried, that of the session's own model. */
function earliestRetry(failures: readonly StepError[]): StepError {
  const outages = failures.filter(({ outage }) => outage);
  const [soonest] = outages.toSorted((one, other) => (one.retry_after_ms ?? 0) - (other.retry_after_ms ?? 0));
  return soonest ?? (failures[0] as StepError);
}

function toStepError(
  error: unknown,
  turn: StreamedTurn,
  model: Model,
  request: ModelRequest,
  limits: ModelLimits,
): StepError {
  if (error instanceof StepError) return error;
  const sent = [request.instructions, ...request.messages.map(({ text }) => text)];
  const circumstances: Circumstances = { model: model.name, key: model.key, sent, limits, exceeded: turn.exceeded };
  return modelError(sdkFailure(error), circumstances);
}

/** Parses a reply that ended normally; throws otherwise. */
function readTurn(turn: StreamedTurn, model: Model, request: ModelRequest): Omit<Turn, "usage" | "cost_usd"> {
  const text = turn.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const { unified = "interrupted", raw } = turn.finish ?? {};
  if (unified === "length" && raw === "model_context_window_exceeded")
    throw new StepError("context_too_large", `the conversation fills the window of ${model.name}`, {
      retryable: false,
    });
  if (unified === "length") throw replyTooLong(model.name);
  if (unified === "content-filter") throw refused(model.name, text.slice(0, 300));
  if (unified === "error" && raw !== undefined && /malformed|unexpected_tool/i.test(raw))
    throw badOutput(`${model.name} wrote a tool call that cannot be parsed`);
  if (unified === "interrupted" || unified === "error") throw cutOff(model.name);
  const nameOf = toolNamer([
    ...(request.tools ?? []).map(({ name }) => name),
    ...request.messages.flatMap((message) =>
      message.role === "assistant" ? message.tool_calls.map(({ name }) => name) : [],
    ),
  ]);
  const unusable: ToolCall[] = [];
  const tool_calls = turn.parts.flatMap((part): ToolCall[] => {
    if (part.type !== "call") return [];
    const args = part.input.trim() === "" ? {} : objectIn(part.input);
    const call = { call_id: part.call_id, name: nameOf(part.name), args: args ?? {} };
    if (!args) unusable.push(call);
    return [call];
  });
  const provider = providerParts(turn, tool_calls.length > 0);
  const message: AssistantMessage = {
    role: "assistant",
    text,
    tool_calls,
    ...(provider ? { provider: { model: model.name, parts: provider as unknown as JsonValue } } : {}),
  };
  return { message, model: model.name, unusable };
}

/** What must be sent back to the provider besides text and calls; null if nothing. */
function providerParts({ parts }: StreamedTurn, hasCalls: boolean): ProviderPart[] | null {
  const isNeeded = parts.some((part) => part.options !== undefined || (part.type === "reasoning" && hasCalls));
  if (!isNeeded) return null;
  return parts.flatMap((part): ProviderPart[] => {
    const options = part.options ? { options: part.options } : {};
    if (part.type === "text") return [{ type: "text", length: part.text.length, ...options }];
    if (part.type === "call") return [{ type: "call", call_id: part.call_id, ...options }];
    return part.options || hasCalls ? [{ type: "reasoning", text: part.text, ...options }] : [];
  });
}

const hasPartsOf = ({ name }: Model, { messages }: ModelRequest): boolean =>
  messages.some((message) => message.role === "assistant" && message.provider?.model === name);

/** The messages that ask for a corrected reply. */
function correction({ message, unusable }: Turn): ModelMessage[] {
  if (message.tool_calls.length === 0)
    return [{ role: "user", text: "Your reply was empty. Say what you have to say." }];
  const results = message.tool_calls.map(({ call_id, name }) => ({
    role: "tool" as const,
    call_id,
    name,
    text: unusable.some((call) => call.call_id === call_id)
      ? "The arguments were not a JSON object. Nothing was done. Make the call again with arguments that are."
      : "Nothing was done, because the arguments of another call could not be read. Make this call again as well.",
    is_error: true,
  }));
  return [message, ...results];
}

/** Merges both replies: text of the first that was already emitted stays part of the answer. */
function joined(first: Turn, second: ModelReply): ModelReply {
  const { text } = first.message;
  if (text === "") return second;
  const { provider } = second.message;
  const parts = provider && Array.isArray(provider.parts) ? provider.parts : null;
  const before: JsonObject = { type: "text", length: text.length };
  const message: AssistantMessage = {
    ...second.message,
    text: `${text}${second.message.text}`,
    ...(provider && parts ? { provider: { ...provider, parts: [before, ...parts] } } : {}),
  };
  return { ...second, message };
}

const withoutUnusable = ({ message, model, usage, cost_usd }: Turn): ModelReply => ({
  message,
  model,
  usage,
  cost_usd,
});

const reported = ({ input_tokens, output_tokens, cached_tokens, estimated }: ModelUsage): ModelReply["usage"] => ({
  input_tokens,
  output_tokens,
  cached_tokens,
  estimated,
});

/** The size of the request in characters, to estimate tokens. */
function charactersOf({ instructions, messages, tools = [] }: ModelRequest): number {
  const spoken = messages.reduce((sum, message) => sum + lengthOf(message), 0);
  return instructions.length + spoken + tools.reduce((sum, tool) => sum + JSON.stringify(tool).length, 0);
}

const lengthOf = (message: ModelMessage): number =>
  message.text.length +
  (message.role === "assistant" && message.tool_calls.length > 0 ? JSON.stringify(message.tool_calls).length : 0);

/** A request as stored in the step's row: the messages since the model's last reply; earlier rows have the rest. */
function requestRecord({ instructions, messages, tools = [] }: ModelRequest): JsonObject {
  const fresh = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const recorded: ModelMessage[] = [];
  let room = KEPT_CHARACTERS;
  for (const message of fresh.toReversed()) {
    room -= lengthOf(message);
    if (room < 0 && recorded.length > 0) break;
    recorded.unshift(message);
  }
  return {
    instructions,
    ...(recorded.length < messages.length ? { earlier_messages: messages.length - recorded.length } : {}),
    messages: recorded,
    ...(tools.length > 0 ? { tools: tools.map(({ name }) => name) } : {}),
  };
}

const replyRecord = ({ text, tool_calls }: AssistantMessage): JsonObject => ({
  text,
  ...(tool_calls.length > 0 ? { tool_calls } : {}),
});

/** The text of an unfinished reply. */
function partialRecord({ parts }: StreamedTurn): JsonValue {
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  return text === "" ? null : { text };
}
