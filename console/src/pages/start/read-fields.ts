import type { JsonSchema } from "../../data/queries.ts";
import { textIn, valueIn } from "../../ui/field-value.ts";

type Read = { body: Record<string, unknown> } | { problems: Map<string, string> };

/** What was filled in, as the API wants it. Fields that were left empty are left out. */
export function readFields(form: FormData, params_schema: JsonSchema): Read {
  const problems = new Map<string, string>();
  const params: Record<string, unknown> = {};
  const options: Record<string, number | string> = {};
  for (const [name, schema] of Object.entries(params_schema.properties ?? {})) {
    try {
      const value = valueIn(form, `params.${name}`, schema);
      if (value !== undefined) params[name] = value;
      else if (params_schema.required?.includes(name) && schema.default === undefined)
        problems.set(`params.${name}`, "This is required.");
    } catch {
      problems.set(`params.${name}`, "This is not JSON.");
    }
  }
  for (const [name, value] of form)
    if (name.startsWith("options.") && value !== "") {
      const option = name.slice("options.".length);
      options[option] = option === "model" ? textIn(form, name).trim() : Number(value);
    }
  const agent_id = textIn(form, "agent_id").trim();
  if (agent_id === "") problems.set("agent_id", "This is required.");
  if (problems.size > 0) return { problems };
  return { body: { agent_id, params, options } };
}
