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

/** What a fork has other than its parent. */
export type ForkChanges = { guidance?: string; state?: object; params?: object; options?: object; moniker?: string };

export const fork = (session_id: string, iteration: number, changes: ForkChanges) =>
  act("fork", session_id, { iteration, ...changes });

/** Lets sessions go on that are held since the server started. */
export const release = (which: { all: true }) => post<{ released: number }>("/api/system/release", which);
