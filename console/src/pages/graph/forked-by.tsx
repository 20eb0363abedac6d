import { useCreator } from "../../data/lineage.ts";
import { type Session, useSession } from "../../data/queries.ts";

/** Who made a fork. */
export function ForkedBy({ session }: { session: Pick<Session, "created_action_id"> }) {
  const { data: user_id } = useCreator(session);
  return user_id ? <span className="wrap-anywhere"> by {user_id}</span> : null;
}

export function ForkedByOf({ session_id }: { session_id: string }) {
  const { data: session } = useSession(session_id);
  return session ? <ForkedBy session={session} /> : null;
}
