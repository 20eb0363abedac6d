import { setTimeout as wait } from "node:timers/promises";
import type { EverstepClient } from "../../../client/client.ts";
import { type Action, actionSchema } from "../../../domain/action.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured } from "../output.ts";
import { acceptedSchema, findSession } from "../sessions.ts";

export type ControlOptions = { json?: boolean };
const SETTLE_MS = 5000;

/** Sends a control action and prints its outcome. */
export async function control(
  client: ApiClient,
  verb: Parameters<EverstepClient["act"]>[1],
  name: string,
  body: { [field: string]: unknown },
  { json }: ControlOptions,
): Promise<void> {
  const { session_id } = await findSession(client, name);
  const { action_id } = await client.submit(acceptedSchema, (server) => server.act(session_id, verb, body));
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
