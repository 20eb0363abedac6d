import type { Collector, LlmStreamCall } from "@boundaryml/baml";
import { z } from "zod";

/** What a call of the model cost and how it ended, as the provider tells it. */
export type CallReport = {
  tokens: number;
  /** Whether the tokens are only an estimate: the provider told none, or was cut off before it did. */
  estimated: boolean;
  /** Whether the reply was cut off at its length limit. */
  is_truncated: boolean;
};

const count = z.number().nonnegative().optional().catch(undefined);
const text = z.string().optional().catch(undefined);
const usage = z
  .object({
    input_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    output_tokens: count,
    prompt_tokens: count,
    completion_tokens: count,
  })
  .optional()
  .catch(undefined);

/** The parts of a streamed event, of any provider, that tell of cost, end and text. */
const eventSchema = z.object({
  type: text,
  usage,
  message: z.object({ usage }).optional().catch(undefined),
  delta: z.object({ stop_reason: text, text }).optional().catch(undefined),
  choices: z
    .array(z.object({ finish_reason: text, delta: z.object({ content: text }).optional().catch(undefined) }))
    .optional()
    .catch(undefined),
  usageMetadata: z
    .object({ promptTokenCount: count, candidatesTokenCount: count, thoughtsTokenCount: count })
    .optional()
    .catch(undefined),
  candidates: z
    .array(
      z.object({
        finishReason: text,
        content: z
          .object({ parts: z.array(z.object({ text })) })
          .optional()
          .catch(undefined),
      }),
    )
    .optional()
    .catch(undefined),
});
type StreamedEvent = z.infer<typeof eventSchema>;

const TRUNCATED: ReadonlySet<string | undefined> = new Set(["length", "max_tokens", "MAX_TOKENS"]);

/** Characters that may be one token. */
const SHORT = 16;

/** About four characters of English make a token. */
const estimate = (characters: number): number => Math.ceil(characters / 4);

/**
 * Reads the provider's own events: the adapters take the first count of output for the last, and know nothing of a call that
 * failed. Null where the provider sent nothing, so that nothing is known to have been used.
 */
export function callReport({ last }: Collector, asked: string): CallReport | null {
  const events = (last?.calls ?? []).flatMap((call) => ("sseResponses" in call ? eventsOf(call) : []));
  if (events.length === 0) return null;
  const input = Math.max(0, ...events.map(inputOf));
  const received = events.reduce((sum, event) => sum + textOf(event).length, 0);
  const told = events.map(outputOf).findLast((tokens) => tokens !== undefined);
  // Some servers say one token of output whatever they said.
  const output = told !== undefined && told <= 1 && received > SHORT ? undefined : told;
  return {
    tokens: (input || estimate(asked.length)) + (output ?? estimate(received)),
    estimated: input === 0 || output === undefined,
    is_truncated: events.some((event) => endsOf(event).some((reason) => TRUNCATED.has(reason))),
  };
}

function eventsOf(call: LlmStreamCall): StreamedEvent[] {
  return (call.sseResponses() ?? []).flatMap((response) => {
    const parsed = eventSchema.safeParse(parse(response.text));
    return parsed.success ? [parsed.data] : [];
  });
}

function inputOf({ usage: told, message, usageMetadata }: StreamedEvent): number {
  const {
    input_tokens = 0,
    cache_creation_input_tokens = 0,
    cache_read_input_tokens = 0,
    prompt_tokens,
  } = told ?? message?.usage ?? {};
  return (
    prompt_tokens ??
    usageMetadata?.promptTokenCount ??
    input_tokens + cache_creation_input_tokens + cache_read_input_tokens
  );
}

/** What an opening message says of output was counted before there was any. */
function outputOf({ usage: told, usageMetadata }: StreamedEvent): number | undefined {
  if (usageMetadata?.candidatesTokenCount !== undefined)
    return usageMetadata.candidatesTokenCount + (usageMetadata.thoughtsTokenCount ?? 0);
  return told?.completion_tokens ?? told?.output_tokens;
}

const endsOf = ({ delta, choices = [], candidates = [] }: StreamedEvent): (string | undefined)[] => [
  delta?.stop_reason,
  ...choices.map(({ finish_reason }) => finish_reason),
  ...candidates.map(({ finishReason }) => finishReason),
];

const textOf = ({ delta, choices = [], candidates = [] }: StreamedEvent): string =>
  [
    delta?.text,
    ...choices.map((choice) => choice.delta?.content),
    ...candidates.flatMap(({ content }) => content?.parts.map((part) => part.text)),
  ].join("");

function parse(event: string): unknown {
  try {
    return JSON.parse(event);
  } catch {
    return null;
  }
}
