import type { Collector, LlmStreamCall } from "@boundaryml/baml";
import { z } from "zod";
import { type ModelUsage, NO_USAGE, UsageReader } from "./model-usage.ts";

/** A model call's usage and end, as reported by the provider. */
export type CallReport = {
  usage: ModelUsage;
  /** `truncated`: cut off at the length limit; `refused`: the provider gave no reply; `cut`: the stream broke off. */
  end: "whole" | "truncated" | "refused" | "cut";
};

const text = z.string().optional().catch(undefined);

/** The parts of a streamed event, of any provider, that contain text or the end of the reply. */
const eventSchema = z.object({
  delta: z.object({ stop_reason: text, text }).optional().catch(undefined),
  choices: z
    .array(z.object({ finish_reason: text, delta: z.object({ content: text }).optional().catch(undefined) }))
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

/** Ends OpenAI's streams, though not those of every compatible server. */
const DONE = "[DONE]";
const TRUNCATED: ReadonlySet<string | undefined> = new Set(["length", "max_tokens", "MAX_TOKENS"]);
const REFUSED: ReadonlySet<string | undefined> = new Set([
  "content_filter",
  "refusal",
  "SAFETY",
  "PROHIBITED_CONTENT",
  "BLOCKLIST",
  "RECITATION",
  "SPII",
]);

/**
 * Reads the provider's own events: the adapters take the first output count for the last, and report nothing for a failed call.
 * Without events no usage is known; a reply that was not streamed has only the adapter's figures.
 */
export function callReport(collector: Collector, inputCharacters: number, reply: string): CallReport {
  const events = (collector.last?.calls ?? []).flatMap((call) => ("sseResponses" in call ? eventsOf(call) : []));
  const usage = new UsageReader();
  for (const event of events) usage.read(event);
  if (events.length === 0) {
    const { inputTokens, outputTokens } = collector.usage;
    if (reply === "" || !inputTokens || !outputTokens) return { usage: NO_USAGE, end: "whole" };
    usage.read({ usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens } });
  }
  const parsed = events.flatMap((event) => {
    const { success, data } = eventSchema.safeParse(event);
    return success ? [data] : [];
  });
  const received = parsed.reduce((sum, event) => sum + textOf(event).length, 0);
  const ends = parsed.flatMap(endsOf);
  return { usage: usage.usage(() => inputCharacters, Math.max(received, reply.length)), end: endOf(ends, events) };
}

function endOf(reasons: readonly (string | undefined)[], events: readonly unknown[]): CallReport["end"] {
  if (reasons.some((reason) => REFUSED.has(reason))) return "refused";
  if (reasons.some((reason) => TRUNCATED.has(reason))) return "truncated";
  const isOver = events.length === 0 || events.includes(DONE) || reasons.some((reason) => reason !== undefined);
  return isOver ? "whole" : "cut";
}

const eventsOf = (call: LlmStreamCall): unknown[] =>
  (call.sseResponses() ?? []).flatMap((response) => {
    const event = parse(response.text);
    return event === null ? [] : [event];
  });

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
  if (event.trim() === DONE) return DONE;
  try {
    return JSON.parse(event);
  } catch {
    return null;
  }
}
