import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type Action, actionSchema } from "../../../domain/action.ts";
import { idSchema } from "../../../domain/ids.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured } from "../output.ts";
import { findSession, sessionPath } from "../sessions.ts";

export type ControlOptions = { json?: boolean };
const SETTLE_MS = 5000;
const submittedSchema = z.object({ action_id: idSchema });

/** Sends a control and tells what became of it. */
export async function control(
  client: ApiClient,
  verb: string,
  prefix: string,
  body: object,
  { json }: ControlOptions,
): Promise<void> {
  const { session_id } = await findSession(client, prefix);
  const { action_id } = await client.post(submittedSchema, sessionPath(session_id, `/${verb}`), body);
  const action = await settled(client, action_id);
  if (json) console.log(JSON.stringify(action));
  else console.log(describe(verb, session_id, action));
  if (action.processed && action.outcome !== "ok")
    throw new CommandError(`${verb} was ${action.outcome}: ${action.error}`);
}

async function settled(client: ApiClient, action_id: string): Promise<Action> {
  const until = Date.now() + SETTLE_MS;
  for (;;) {
    const action = await client.get(actionSchema, `/api/actions/${action_id}`);
    if (action.processed || Date.now() > until) return action;
    await wait(20);
  }
}

function describe(verb: string, session_id: string, { processed, outcome, receipt }: Action): string {
  const word = processed
    ? outcome === "ok"
      ? coloured("green", "ok")
      : coloured("red", String(outcome))
    : coloured("yellow", "accepted");
  return `${verb} ${session_id}: ${word} (${receipt})`;
}
