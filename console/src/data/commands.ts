import type { JsonObject } from "../../../src/domain/json.ts";
import type { Rerun, RerunRequest } from "../../../src/domain/rerun.ts";
import type { SessionOptions } from "../../../src/domain/session.ts";
import { ask, pathOf, post } from "./api.ts";
import { myName } from "./identity.ts";
import { readAgain } from "./queries.ts";

type Verb = "pause" | "resume" | "destroy" | "interrupt" | "answer";
const sender = () => ({ user_id: myName.value, metadata: { surface: "console" } });

/** Requests carry the person's name, so that receipts say who sent them. */
async function act(verb: Verb, session_id: string, payload: Record<string, unknown>) {
  const accepted = await ask((server) => server.act(session_id, verb, { ...payload, ...sender() }));
  void readAgain("actions", session_id);
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

/** What differs from the parent. */
export type ForkChanges = {
  guidance?: string;
  state?: JsonObject;
  params?: JsonObject;
  options?: SessionOptions;
  moniker?: string;
};

export async function fork(session_id: string, iteration: number, changes: ForkChanges) {
  const accepted = await ask((server) => server.fork(session_id, { iteration, ...changes, ...sender() }));
  void readAgain("actions", session_id);
  return accepted;
}

/** What differs from the recorded step. */
export type RerunChanges = Pick<RerunRequest, "model" | "guidance" | "state">;

/** Without a timeout: a model may take long. */
export const rerun = (session_id: string, iteration: number, changes: RerunChanges, signal: AbortSignal) =>
  ask((server) =>
    server.call("POST", pathOf("sessions", session_id, "steps", String(iteration), "rerun"), {
      body: changes,
      signal,
      timeout_ms: 0,
    }),
  ) as Promise<Rerun>;

/** Releases sessions that are held since the server started. */
export const release = (which: { all: true }) => post<{ released: number }>("/api/system/release", which);
