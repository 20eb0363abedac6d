import { assignments } from "../assignments.ts";
import type { ApiClient } from "../client.ts";
import { coloured } from "../output.ts";
import { acceptedSchema } from "../sessions.ts";

export type CreateOptions = {
  agent?: string;
  session?: string;
  conversation?: string;
  param: string[];
  option: string[];
  json?: boolean;
};

export async function create(client: ApiClient, moniker: string, options: CreateOptions): Promise<void> {
  const request = {
    agent_id: options.agent ?? moniker,
    moniker,
    ...(options.session === undefined ? {} : { session_id: options.session }),
    ...(options.conversation === undefined ? {} : { conversation_id: options.conversation }),
    params: assignments(options.param),
    options: assignments(options.option),
  };
  const answer = await client.submit(acceptedSchema, (server) => server.create(request));
  if (options.json) return console.log(JSON.stringify(answer));
  console.log(`${coloured("green", "started")} session ${answer.session_id} of agent ${answer.agent_id}`);
  console.log(`watch it with: ${client.hint("logs", answer.session_id, "-f")}`);
}
