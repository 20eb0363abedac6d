import { createHash } from "node:crypto";

/**
 * A turn's ids are derived from stored data, so that any process that continues the turn, even after a crash, computes the same
 * ones.
 */
export function turnIds(session_id: string, first_iteration: number): { trace_id: string; span_id: string } {
  const hash = createHash("sha256").update(`everstep turn\n${first_iteration}\n${session_id}`).digest("hex");
  return { trace_id: hash.slice(0, 32), span_id: hash.slice(32, 48) };
}
