import type { SessionOptions } from "../../../src/domain/session.ts";
import { pathOf, post } from "./api.ts";
import { myName } from "./identity.ts";
import { client } from "./queries.ts";

type Accepted = { action_id: string; session_id: string };

/** What a person asks of a session carries their name, so that its receipt says who it was. */
async function act(verb: string, session_id: string, payload: Record<string, unknown>): Promise<Accepted> {
  const sender = { user_id: myName.value, metadata: { surface: "console" } };
  const accepted = await post<Accepted>(pathOf("sessions", session_id, verb), { ...payload, ...sender });
  void client.invalidateQueries({ queryKey: ["actions", session_id] });
  return accepted;
}

export const pause = (session_id: string) => act("pause", session_id, {});
export const resume = (session_id: string, options?: SessionOptions) =>
  act("resume", session_id, options ? { options } : {});
export const destroy = (session_id: string) => act("destroy", session_id, {});
export const guide = (session_id: string, guidance: unknown, mode: "next" | "now") =>
  act("interrupt", session_id, { guidance, mode });
export const answer = (session_id: string, question_id: string, said: unknown) =>
  act("answer", session_id, { answer: said, question_id });

export const fork = (session_id: string, iteration: number, guidance: string) =>
  act("fork", session_id, { iteration, ...(guidance ? { guidance } : {}) });
