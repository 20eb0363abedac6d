import type { SpanPlace } from "../domain/traceparent.ts";

type AttributeValue = string | number | boolean | string[];
export type Attributes = Record<string, AttributeValue | undefined>;
type SpanKind = "internal" | "client" | "producer";

export type NewSpan = {
  name: string;
  kind: SpanKind;
  /** A `traceparent`; null for the first span of a trace. */
  parent: string | null;
  /** Only for the first span of a trace; generated if absent. */
  trace_id?: string;
  /** Generated if absent. */
  span_id?: string;
  /** Start time in milliseconds since 1970. Default: now. */
  at?: number;
  attributes: Attributes;
};

export type SpanEnd = {
  /** The kind of error it ended with; absent on success. */
  error_type?: string | undefined;
  /** The error's message; exported only if content is. */
  error_message?: string | undefined;
  /** In milliseconds since 1970. Default: now. */
  at?: number;
};

/** A span in progress. One that is never ended is not exported. */
export interface Span {
  /** Its context, to propagate. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  link(place: SpanPlace, attributes: Attributes): void;
  end(end?: SpanEnd): void;
}

/**
 * Creates and exports spans.
 *
 * - No method throws, waits or takes long, whatever happens to the spans.
 * - Absent if tracing is off, which then costs nothing.
 */
export interface Tracer {
  /** Whether spans may carry content: prompts, replies, arguments, results, error messages. */
  readonly captures_content: boolean;
  start(span: NewSpan): Span;
}
