import type { SpanPlace } from "../domain/traceparent.ts";

type AttributeValue = string | number | boolean | string[];
export type Attributes = Record<string, AttributeValue | undefined>;
type SpanKind = "internal" | "client" | "producer";

export type NewSpan = {
  name: string;
  kind: SpanKind;
  /** A `traceparent`; null for the first span of a trace. */
  parent: string | null;
  /** Of the first span of a trace; made up where absent. */
  trace_id?: string;
  /** Made up where absent. */
  span_id?: string;
  /** When it began, in milliseconds since 1970; now where absent. */
  at?: number;
  attributes: Attributes;
};

export type SpanEnd = {
  /** What kind of error it ended with; absent where it went well. */
  error_type?: string | undefined;
  /** What the error says, for those who may read content. */
  error_message?: string | undefined;
  /** In milliseconds since 1970; now where absent. */
  at?: number;
};

/** A span under way. One that is never ended is not exported. */
export interface Span {
  /** Where it stands, to be passed on. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  link(place: SpanPlace, attributes: Attributes): void;
  end(end?: SpanEnd): void;
}

/**
 * Makes spans and hands them on.
 *
 * - No method throws, waits or takes long, whatever becomes of the spans.
 * - Absent where tracing is off: whoever has none does nothing more than without.
 */
export interface Tracer {
  /** Whether spans may carry what was said: prompts, replies, arguments, results, texts of errors. */
  readonly captures_content: boolean;
  start(span: NewSpan): Span;
}
