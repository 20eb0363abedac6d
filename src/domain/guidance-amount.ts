import type { JsonValue } from "./json.ts";

/** An amount of guidance: the number of pieces and their size in bytes of JSON. */
export type GuidanceAmount = { count: number; bytes: number };

/**
 * The most guidance that one commit delivers to a session and one step receives. The rest comes with the next one. A single
 * larger piece goes alone.
 */
export const GUIDANCE_SLICE: Readonly<GuidanceAmount> = { count: 1000, bytes: 4 * 1024 * 1024 };

/** A value's size as JSON, in bytes of UTF-8. */
export const jsonBytes = (value: JsonValue): number => Buffer.byteLength(JSON.stringify(value));

export const amountOf = (guidance: readonly JsonValue[]): GuidanceAmount => ({
  count: guidance.length,
  bytes: guidance.reduce<number>((sum, piece) => sum + jsonBytes(piece), 0),
});
