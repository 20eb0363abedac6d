import { GUIDANCE_SLICE, jsonBytes } from "../domain/guidance-amount.ts";
import type { Session } from "../domain/session.ts";

/** Guidance for one step and the actions that delivered it, in the same order. */
export type GuidanceSlice = { guidance: Session["pending_guidance"]; action_ids: string[] };

/** The guidance for the next step: all that is pending, or the oldest part if that is more than one step takes. */
export function firstSlice({ pending_guidance, pending_action_ids }: Session): GuidanceSlice {
  let bytes = 0;
  let count = 0;
  while (count < Math.min(pending_guidance.length, GUIDANCE_SLICE.count)) {
    bytes += jsonBytes(pending_guidance[count] as (typeof pending_guidance)[number]);
    if (bytes > GUIDANCE_SLICE.bytes && count > 0) break;
    count += 1;
  }
  return { guidance: pending_guidance.slice(0, count), action_ids: pending_action_ids.slice(0, count) };
}

/** Whether the next step receives everything that is pending. */
export const isWholeSlice = (session: Session): boolean =>
  firstSlice(session).guidance.length === session.pending_guidance.length;
