import type { JsonValue } from "./json.ts";

/** An amount of guidance: how many pieces, and their bytes as JSON. */
export type GuidanceAmount = { count: number; bytes: number };

/**
 * The most guidance that is delivered to a session in one commit, and that one step is given. What is more comes with the next
 * one. A first piece that is larger goes alone.
 */
export const GUIDANCE_SLICE: Readonly<GuidanceAmount> = { count: 1000, bytes: 4 * 1024 * 1024 };

/** How large a value is as JSON, in bytes of UTF-8. */
export const jsonBytes = (value: JsonValue): number => Buffer.byteLength(JSON.stringify(value));

export const amountOf = (guidance: readonly JsonValue[]): GuidanceAmount => ({
  count: guidance.length,
  bytes: guidance.reduce<number>((sum, piece) => sum + jsonBytes(piece), 0),
});
