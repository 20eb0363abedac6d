/** A span's context as in W3C Trace Context: its trace, its id, and whether the trace is sampled. */
export type SpanPlace = { trace_id: string; span_id: string; is_sampled: boolean };

const PATTERN = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;
const LONGEST = 512;
const SAMPLED = 1;

/** Parses a `traceparent`; null if it is not one. Later versions of the format may append fields. */
export function readTraceparent(text: unknown): SpanPlace | null {
  if (typeof text !== "string" || text.length > LONGEST) return null;
  const [, trace_id, span_id, flags] = PATTERN.exec(text) ?? [];
  if (trace_id === undefined || span_id === undefined || flags === undefined) return null;
  return { trace_id, span_id, is_sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export const toTraceparent = ({ trace_id, span_id, is_sampled }: SpanPlace): string =>
  `00-${trace_id}-${span_id}-0${is_sampled ? 1 : 0}`;

/** The context of a new child span, for callers that must propagate it before the span exists. */
export function childTraceparent(parent: string): string {
  const place = readTraceparent(parent);
  return place ? toTraceparent({ ...place, span_id: newSpanId() }) : parent;
}

function newSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  bytes[0] = (bytes[0] as number) | 1; // An all-zero id is invalid.
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
