import { searchAnswerSchema } from "../../../domain/search.ts";
import type { ApiClient } from "../client.ts";
import { oneLine, table } from "../output.ts";

export type SearchOptions = { agent?: string; session?: string; limit: string; json?: boolean };

export async function search(
  client: ApiClient,
  q: string,
  { agent, session, limit, json }: SearchOptions,
): Promise<void> {
  const answer = await client.get(searchAnswerSchema, "/api/search", {
    q,
    agent_id: agent,
    session_id: session,
    limit,
  });
  if (json) return console.log(JSON.stringify(answer));
  const { hits, archives_skipped } = answer;
  if (archives_skipped > 0)
    console.error(
      `${archives_skipped} archived ${archives_skipped === 1 ? "session was" : "sessions were"} not searched (everstep archive --restore SESSION brings one back)`,
    );
  if (hits.length === 0) return console.log("nothing found");
  const rows = hits.map((hit) => [
    hit.kind,
    hit.kind === "step" ? `${hit.session_id}#${hit.iteration}` : `${hit.conversation_id}`,
    hit.score.toFixed(2),
    oneLine(hit.text, 100),
  ]);
  console.log(table(["KIND", "WHERE", "SCORE", "TEXT"], rows));
}
