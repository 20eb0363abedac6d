import type { Session } from "../../../domain/session.ts";
import type { ApiClient } from "../client.ts";
import { age, oneLine, outageText, statusText, table } from "../output.ts";
import { sessionsSchema } from "../sessions.ts";

export type PsOptions = { status?: string; agent?: string; limit: string; json?: boolean };

export async function ps(client: ApiClient, { status, agent, limit, json }: PsOptions): Promise<void> {
  const answer = await client.get(sessionsSchema, "/api/sessions", { status, agent_id: agent, limit });
  if (json) return console.log(JSON.stringify(answer));
  const { sessions } = answer;
  if (sessions.length === 0)
    return console.log("no sessions yet; start one with: everstep create joke --param subject=tea");
  const rows = sessions.map((session) => [
    session.session_id,
    session.agent_id,
    session.moniker,
    statusText(session.status),
    String(session.iteration + 1),
    age(session.created_at),
    oneLine(outageText(session) ?? session.last_error ?? asText(session.result), 60),
  ]);
  console.log(table(["SESSION", "AGENT", "MONIKER", "STATUS", "STEPS", "AGE", "LAST"], rows));
}

const asText = (result: Session["result"]): string =>
  typeof result === "string" ? result : result === null ? "" : JSON.stringify(result);
