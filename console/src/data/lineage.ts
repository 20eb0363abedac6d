import { useQuery } from "@tanstack/react-query";
import { get, pathOf } from "./api.ts";
import { type Action, client, type Session, type SessionSummary, summariesPage } from "./queries.ts";

/** Ancestors that are looked up; a longer lineage starts in the middle. */
const MOST_ANCESTORS = 50;

const originOf = ({ parent_session_id, spawned_by }: SessionSummary): string | null =>
  parent_session_id ?? spawned_by?.session_id ?? null;

async function readSummary(session_id: string): Promise<SessionSummary | null> {
  const page = await client.fetchQuery(summariesPage({ session_id: [session_id] }, 0, 1));
  return page.sessions[0] ?? null;
}

/** The ancestors of a session, the oldest first, and the session itself. */
export const useLineage = (session_id: string) =>
  useQuery({
    // Under "summaries", so that live updates patch and refresh it.
    queryKey: ["summaries", "lineage", session_id],
    queryFn: async () => {
      const line: SessionSummary[] = [];
      for (let id: string | null = session_id; id !== null && line.length < MOST_ANCESTORS; ) {
        const row: SessionSummary | null = await readSummary(id);
        if (row === null) break;
        line.unshift(row);
        id = originOf(row);
      }
      return { sessions: line };
    },
  });

/** Who created the session: the sender of the request. */
export const useCreator = (session: Pick<Session, "created_action_id">) =>
  useQuery({
    queryKey: ["creator", session.created_action_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const { metadata } = await get<Action>(pathOf("actions", session.created_action_id), {}, signal);
      const { user_id } = metadata as { user_id?: unknown };
      return typeof user_id === "string" ? user_id : null;
    },
  });
