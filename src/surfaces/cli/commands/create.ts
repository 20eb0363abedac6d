import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import type { JsonValue } from "../../../domain/json.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured } from "../output.ts";

export type CreateOptions = {
  agent?: string;
  session?: string;
  conversation?: string;
  param: string[];
  option: string[];
  json?: boolean;
};

const acceptedSchema = z.object({ agent_id: idSchema, session_id: idSchema, action_id: idSchema });

export async function create(client: ApiClient, moniker: string, options: CreateOptions): Promise<void> {
  const answer = await client.post(acceptedSchema, "/api/agents", {
    agent_id: options.agent ?? moniker,
    moniker,
    ...(options.session === undefined ? {} : { session_id: options.session }),
    ...(options.conversation === undefined ? {} : { conversation_id: options.conversation }),
    params: Object.fromEntries(options.param.map(assignment)),
    options: Object.fromEntries(options.option.map(assignment)),
  });
  if (options.json) return console.log(JSON.stringify(answer));
  console.log(`${coloured("green", "started")} session ${answer.session_id} of agent ${answer.agent_id}`);
  console.log(`watch it with: everstep logs ${answer.session_id} -f`);
}

/** `key=value`; a value that is JSON counts as such, everything else is text. */
function assignment(text: string): [string, JsonValue] {
  const at = text.indexOf("=");
  if (at < 1) throw new CommandError(`${text} is not of the form key=value`, 2);
  const value = text.slice(at + 1);
  try {
    return [text.slice(0, at), JSON.parse(value) as JsonValue];
  } catch {
    return [text.slice(0, at), value];
  }
}
