import type { JsonSchema } from "../../data/queries.ts";
import { textIn } from "../../ui/field-value.ts";
import { REQUIRED, readObject } from "../../ui/read-object.ts";

type Read = { body: Record<string, unknown> } | { problems: Map<string, string> };

/** The filled-in fields as the API takes them. Empty ones are omitted. */
export function readFields(form: FormData, params_schema: JsonSchema): Read {
  const { value: params, problems } = readObject(form, params_schema, "params.");
  const options: Record<string, number | string> = {};
  for (const [name, value] of form)
    if (name.startsWith("options.") && value !== "") {
      const option = name.slice("options.".length);
      options[option] = option === "model" ? textIn(form, name).trim() : Number(value);
    }
  const agent_id = textIn(form, "agent_id").trim();
  if (agent_id === "") problems.set("agent_id", REQUIRED);
  if (problems.size > 0) return { problems };
  return { body: { agent_id, params, options } };
}
