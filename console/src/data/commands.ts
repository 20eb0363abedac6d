import type { SessionOptions } from "../../../src/domain/session.ts";
import { pathOf, post } from "./api.ts";
import { myName } from "./identity.ts";
import { client } from "./queries.ts";

type Accepted = { action_id: string; session_id: string };

/** What a person asks of a session goes through the queue under their name, so that its receipt says who it was. */
async function act(action_type: string, session_id: string, payload: Record<string, unknown>): Promise<Accepted> {
  const metadata = { user_id: myName.value, surface: "console" };
  const accepted = await post<Accepted>("/api/actions", { action_type, session_id, payload, metadata });
  void client.invalidateQueries({ queryKey: ["actions", session_id] });
  return accepted;
}

export const pause = (session_id: string) => act("agent_pause", session_id, {});
export const resume = (session_id: string, options?: SessionOptions) =>
  act("agent_resume", session_id, options ? { options } : {});
export const destroy = (session_id: string) => act("agent_destroy", session_id, {});
export const guide = (session_id: string, guidance: unknown, mode: "next" | "now") =>
  act("agent_interrupt", session_id, { guidance, mode });

export const fork = (session_id: string, iteration: number, guidance: string) =>
  post<Accepted>(pathOf("sessions", session_id, "fork"), { iteration, ...(guidance ? { guidance } : {}) });
