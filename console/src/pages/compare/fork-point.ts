import type { Session } from "../../data/queries.ts";

/** The last common step of a fork and its parent, or of two forks of one parent; null if there is none. */
export function forkPoint(one: Session, other: Session): number | null {
  if (other.parent_session_id === one.session_id) return other.parent_iteration;
  if (one.parent_session_id === other.session_id) return one.parent_iteration;
  if (one.parent_session_id === null || one.parent_session_id !== other.parent_session_id) return null;
  return Math.min(one.parent_iteration ?? 0, other.parent_iteration ?? 0);
}
