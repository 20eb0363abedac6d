import { z } from "zod";
import { type Session, sessionSchema } from "../../domain/session.ts";
import { type Step, stepSchema } from "../../domain/step.ts";
import { type ApiClient, CommandError } from "./client.ts";

const NEWEST = 500;
const PAGE = 500;
const stepsSchema = z.object({ steps: z.array(stepSchema) });
export const sessionsSchema = z.object({ sessions: z.array(sessionSchema) });

/** A session by its id, or by the beginning of it where only one session begins so. */
export async function findSession(client: ApiClient, prefix: string): Promise<Session> {
  const exact = await client.find(sessionSchema, sessionPath(prefix));
  if (exact) return exact;
  const { sessions } = await client.get(sessionsSchema, "/api/sessions", { limit: NEWEST });
  const matches = sessions.filter(({ session_id }) => session_id.startsWith(prefix));
  const [match] = matches;
  if (!match) throw new CommandError(`no session is named ${prefix}; \`everstep ps\` lists them`);
  if (matches.length > 1) {
    const some = matches.slice(0, 5).map(({ session_id }) => session_id);
    throw new CommandError(
      `${matches.length} sessions begin with ${prefix}: ${some.join(", ")}${matches.length > 5 ? ", …" : ""}`,
    );
  }
  return match;
}

export const sessionPath = (session_id: string, rest = ""): string =>
  `/api/sessions/${encodeURIComponent(session_id)}${rest}`;

/** A session's steps after an iteration, page by page. */
export async function* stepsAfter(
  client: ApiClient,
  session_id: string,
  after_iteration: number,
): AsyncGenerator<Step> {
  for (let offset = 0; ; offset += PAGE) {
    const query = { session_id, after_iteration, limit: PAGE, offset };
    const { steps } = await client.get(stepsSchema, "/api/agent-steps", query);
    yield* steps;
    if (steps.length < PAGE) return;
  }
}
