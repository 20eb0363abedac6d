import { z } from "zod";
import { type ApiClient, CommandError } from "../client.ts";
import { findSession } from "../sessions.ts";

export type ReleaseOptions = { agent?: string; all?: boolean; json?: boolean };

const releasedSchema = z.object({ released: z.int() });

/** Releases sessions that a start with EVERSTEP_START_HELD=1 holds. */
export async function release(
  client: ApiClient,
  prefixes: string[],
  { agent, all, json }: ReleaseOptions,
): Promise<void> {
  if (prefixes.length === 0 && agent === undefined && !all)
    throw new CommandError("pass sessions, or use --agent ID or --all", 2);
  const session_ids: string[] = [];
  for (const prefix of prefixes) session_ids.push((await findSession(client, prefix)).session_id);
  const answer = await client.post(releasedSchema, "/api/system/release", {
    ...(session_ids.length > 0 && { session_ids }),
    ...(agent !== undefined && { agent_id: agent }),
    ...(all && { all }),
  });
  if (json) return console.log(JSON.stringify(answer));
  console.log(`released ${answer.released} ${answer.released === 1 ? "session" : "sessions"}`);
}
