import type { JsonObject } from "../../../domain/json.ts";
import { assignments } from "../assignments.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured } from "../output.ts";
import { acceptedSchema, findSession } from "../sessions.ts";

export type ForkOptions = {
  at?: string;
  session?: string;
  guidance?: string;
  moniker?: string;
  param: string[];
  option: string[];
  json?: boolean;
};

/** Starts a session that continues from another's step, by default the last one. */
export async function fork(client: ApiClient, name: string, options: ForkOptions): Promise<void> {
  const parent = await findSession(client, name);
  const { session_id } = parent;
  const iteration = options.at === undefined ? parent.iteration : Number(options.at);
  if (iteration < 0) throw new CommandError(`session ${session_id} has no step yet to fork from`);
  const request = {
    iteration,
    ...(options.session === undefined ? {} : { session_id: options.session }),
    ...(options.guidance === undefined ? {} : { guidance: options.guidance }),
    ...(options.moniker === undefined ? {} : { moniker: options.moniker }),
    ...changed("params", parent.params, options.param),
    ...changed("options", parent.options, options.option),
  };
  const answer = await client.submit(acceptedSchema, (server) => server.fork(session_id, request));
  if (options.json) return console.log(JSON.stringify(answer));
  console.log(`${coloured("green", "forked")} session ${answer.session_id} from step ${iteration} of ${session_id}`);
  console.log(`watch it with: ${client.hint("logs", answer.session_id, "-f")}`);
}

/** The server replaces params and options as a whole; here only the given ones change, the others stay the parent's. */
const changed = (field: string, own: JsonObject, words: string[]): JsonObject =>
  words.length === 0 ? {} : { [field]: { ...own, ...assignments(words) } };
