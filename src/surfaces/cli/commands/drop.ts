import { actionSchema } from "../../../domain/action.ts";
import type { ApiClient } from "../client.ts";
import type { ControlOptions } from "./control.ts";

/** Takes back guidance that no step has used yet. */
export async function drop(client: ApiClient, action_id: string, { json }: ControlOptions): Promise<void> {
  const action = await client.delete(actionSchema, `/api/actions/${encodeURIComponent(action_id)}`);
  if (json) return console.log(JSON.stringify(action));
  const isOver = action.receipt === "bounced";
  console.log(isOver ? `${action_id} was taken back` : `${action_id} will be taken back unless a step uses it first`);
}
