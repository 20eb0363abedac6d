import { isStoppedByLimit, type Session } from "../../../domain/session.ts";
import type { ApiClient } from "../client.ts";
import { age, coloured, printable, statusText } from "../output.ts";
import { sessionsSchema } from "../sessions.ts";
import { questionText } from "./answer.ts";

export type InboxOptions = { agent?: string; limit: string; json?: boolean };

/** Sessions that need a person: they ask something, failed, are held or reached a limit. */
export async function inbox(client: ApiClient, { agent, limit, json }: InboxOptions): Promise<void> {
  const query = { needs_person: "true", agent_id: agent, limit };
  const answer = await client.get(sessionsSchema, "/api/sessions", query);
  if (json) return console.log(JSON.stringify(answer));
  if (answer.sessions.length === 0) return console.log("nothing needs you");
  console.log(answer.sessions.map((session) => entry(client, session)).join("\n\n"));
}

function entry(client: ApiClient, session: Session): string {
  const { session_id, agent_id, moniker, status, question, updated_at } = session;
  const title = `${coloured("bold", session_id)}  ${agent_id} (${moniker}), ${statusText(status)}, ${age(question?.asked_at ?? updated_at)}`;
  const next = question === null ? nextMove(client, session) : client.hint("answer", session_id, "…");
  return [title, ...indented(printable(reasonOf(session))), `  ${coloured("dim", next)}`].join("\n");
}

function nextMove(client: ApiClient, session: Session): string {
  const { session_id, status, stop_reason } = session;
  if (isStoppedByLimit(session)) return client.hint("resume", session_id, "--option", `${stop_reason}=…`);
  return client.hint(status === "paused" || status === "error" ? "resume" : "logs", session_id);
}

function reasonOf({ question, last_error, pause_reason, stop_reason }: Session): string {
  if (question !== null) return questionText(question);
  if (pause_reason !== null && pause_reason.kind !== "person") return `it is held: ${JSON.stringify(pause_reason)}`;
  return last_error ?? (stop_reason === null ? "it is held" : `it reached ${stop_reason}`);
}

const indented = (text: string): string[] => text.split("\n").map((line) => `  ${line}`);
