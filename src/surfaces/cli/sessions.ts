import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import { type Session, sessionSchema } from "../../domain/session.ts";
import { sessionSummarySchema } from "../../domain/session-summary.ts";
import { type Step, stepSchema } from "../../domain/step.ts";
import { type ApiClient, CommandError } from "./client.ts";

const PAGE = 500;
const SHOWN = 5;
const stepsSchema = z.object({ steps: z.array(stepSchema) });
export const sessionsSchema = z.object({ sessions: z.array(sessionSchema) });
export const summariesSchema = z.object({
  sessions: z.array(sessionSummarySchema),
  total: z.int(),
  counts: z.record(z.string(), z.int()),
});
export const acceptedSchema = z.object({ agent_id: idSchema, session_id: idSchema, action_id: idSchema });

/** Finds a session by its id, by its agent's id (the latest session), or by a unique prefix of its id. */
export async function findSession(client: ApiClient, name: string): Promise<Session> {
  const exact = await client.find(sessionSchema, sessionPath(name));
  if (exact) return exact;
  const agent = await client.find(z.object({ latest: sessionSchema }), `/api/agents/${encodeURIComponent(name)}`);
  if (agent) return agent.latest;
  const query = { q: name, limit: PAGE };
  const { sessions } = await client.get(summariesSchema, "/api/session-summaries", query);
  const matches = sessions.filter(({ session_id }) => session_id.startsWith(name));
  const [match] = matches;
  if (!match) throw new CommandError(`no session or agent is named ${name}; \`${client.hint("ps")}\` lists them`);
  if (matches.length > 1) {
    const some = matches.slice(0, SHOWN).map(({ session_id }) => session_id);
    throw new CommandError(
      `${matches.length} sessions begin with ${name}: ${some.join(", ")}${matches.length > SHOWN ? ", …" : ""}`,
    );
  }
  return client.get(sessionSchema, sessionPath(match.session_id));
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
