import type { JsonObject } from "../../domain/json.ts";
import { AnswerFilter } from "./json-reply.ts";
import type { ModelLimits } from "./model-errors.ts";
import { type ModelUsage, UsageReader } from "./model-usage.ts";
import type { CallOptions, FinishReason, ProviderModel, StreamPart } from "./provider-models.ts";

/** A part of a reply, in the order the model wrote it. `options` are the provider's, to be sent back with it. */
export type ReplyPart =
  | { type: "text"; text: string; options?: JsonObject }
  | { type: "reasoning"; text: string; options?: JsonObject }
  /** `input` is what the model wrote as arguments; it need not be JSON. */
  | { type: "call"; call_id: string; name: string; input: string; options?: JsonObject };

type Block = Exclude<ReplyPart, { type: "call" }>;

/**
 * A model call in progress: its output and usage so far, whether it succeeds or not.
 *
 * It ends itself when the first token, the next one, or the whole reply takes too long; `exceeded` says which.
 */
export class StreamedTurn {
  readonly parts: ReplyPart[] = [];
  finish: FinishReason | null = null;
  exceeded: "first_token" | "reply" | null = null;
  readonly #usage = new UsageReader();
  readonly #blocks = new Map<string, Block>();
  readonly #limits: ModelLimits;
  readonly #onText: (text: string) => void;
  readonly #limit = new AbortController();
  /** Models without a separate channel for reasoning write it before the answer, in tags. It is not shown to people. */
  readonly #answer = new AnswerFilter();
  #received = 0;
  #silence: NodeJS.Timeout | undefined;

  constructor(limits: ModelLimits, onText: (text: string) => void) {
    this.#limits = limits;
    this.#onText = onText;
  }

  /** The call's usage so far; `countSent` counts the characters sent. */
  usage(countSent: () => number): ModelUsage {
    return this.#usage.usage(countSent, this.#received);
  }

  /** Throws what the provider's package throws or the stream reports. */
  async run(model: ProviderModel, options: CallOptions, signal: AbortSignal): Promise<void> {
    const whole = setTimeout(() => this.#exceed("reply"), this.#limits.reply_ms);
    this.#expectToken();
    try {
      const abortSignal = AbortSignal.any([signal, this.#limit.signal]);
      const { stream } = await model.doStream({ ...options, abortSignal, includeRawChunks: true });
      for await (const part of stream) this.#handle(part);
      const block = this.parts.findLast((part) => part.type === "text");
      if (block) this.#emit(block, this.#answer.end());
    } finally {
      clearTimeout(whole);
      clearTimeout(this.#silence);
    }
  }

  #exceed(limit: "first_token" | "reply"): void {
    this.exceeded = limit;
    this.#limit.abort();
  }

  #expectToken(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#exceed("first_token"), this.#limits.first_token_ms);
  }

  /** Ignores irrelevant parts, such as sources and keep-alives. */
  #handle(part: StreamPart): void {
    if (part.type === "raw") this.#usage.read(part.rawValue);
    else if (part.type === "text-start") this.#begin("text", part);
    else if (part.type === "reasoning-start") this.#begin("reasoning", part);
    else if (part.type === "text-delta") this.#grow("text", part);
    else if (part.type === "reasoning-delta") this.#grow("reasoning", part);
    else if (part.type === "text-end" || part.type === "reasoning-end")
      this.#keepOptions(this.#blocks.get(part.id), part.providerMetadata);
    else if (part.type === "tool-input-delta") this.#receive(part.delta);
    else if (part.type === "tool-call") this.#call(part);
    else if (part.type === "finish") this.finish = part.finishReason;
    else if (part.type === "error") throw part.error;
  }

  #receive(delta: string): void {
    this.#received += delta.length;
    this.#expectToken();
  }

  #call({
    toolCallId: call_id,
    toolName: name,
    input,
    providerMetadata,
  }: Extract<StreamPart, { type: "tool-call" }>): void {
    const call: ReplyPart = { type: "call", call_id, name, input };
    this.#keepOptions(call, providerMetadata);
    this.parts.push(call);
    this.#expectToken();
  }

  #begin(type: Block["type"], { id, providerMetadata }: { id: string; providerMetadata?: object }): Block {
    const block: Block = { type, text: "" };
    this.#keepOptions(block, providerMetadata);
    this.#blocks.set(id, block);
    this.parts.push(block);
    return block;
  }

  #grow(type: Block["type"], part: { id: string; delta: string; providerMetadata?: object }): void {
    const existing = this.#blocks.get(part.id);
    const block = existing?.type === type ? existing : this.#begin(type, part);
    this.#keepOptions(block, part.providerMetadata);
    if (part.delta === "") return;
    this.#receive(part.delta);
    if (type === "reasoning") block.text += part.delta;
    else this.#emit(block, this.#answer.push(part.delta));
  }

  #emit(block: Block, text: string): void {
    if (text === "") return;
    block.text += text;
    this.#onText(text);
  }

  #keepOptions(part: ReplyPart | undefined, options: object | undefined): void {
    if (part && options && Object.keys(options).length > 0) part.options = options as JsonObject;
  }
}
