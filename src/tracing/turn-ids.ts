import { createHash } from "node:crypto";

/** A turn's ids are made from what the store keeps: whoever goes on with the turn, after a crash too, finds the same ones. */
export function turnIds(session_id: string, first_iteration: number): { trace_id: string; span_id: string } {
  const hash = createHash("sha256").update(`everstep turn\n${first_iteration}\n${session_id}`).digest("hex");
  return { trace_id: hash.slice(0, 32), span_id: hash.slice(32, 48) };
}
