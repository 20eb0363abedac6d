import type { JsonSchema } from "../../data/queries.ts";

type FieldKind = "choice" | "flag" | "number" | "json" | "long text" | "text";

export function kindOf({ type, enum: choices, maxLength }: JsonSchema): FieldKind {
  if (choices) return "choice";
  if (type === "boolean") return "flag";
  if (type === "number" || type === "integer") return "number";
  if (type !== "string") return "json";
  return maxLength !== undefined && maxLength > 1000 ? "long text" : "text";
}

type Read = { body: Record<string, unknown> } | { problems: Map<string, string> };

/** What was filled in, as the API wants it. Fields that were left empty are left out. */
export function readFields(form: FormData, params_schema: JsonSchema): Read {
  const problems = new Map<string, string>();
  const params: Record<string, unknown> = {};
  const options: Record<string, number> = {};
  for (const [name, schema] of Object.entries(params_schema.properties ?? {})) {
    const text = textIn(form, `params.${name}`);
    try {
      const value = valueOf(text, kindOf(schema), form.has(`params.${name}`));
      if (value !== undefined) params[name] = value;
    } catch {
      problems.set(`params.${name}`, "This is not JSON.");
    }
  }
  for (const [name, value] of form)
    if (name.startsWith("options.") && value !== "") options[name.slice("options.".length)] = Number(value);
  const agent_id = textIn(form, "agent_id").trim();
  if (agent_id === "") problems.set("agent_id", "It needs a name.");
  if (problems.size > 0) return { problems };
  return { body: { agent_id, params, options } };
}

function textIn(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

function valueOf(text: string, kind: FieldKind, isThere: boolean): unknown {
  if (kind === "flag") return isThere;
  if (text === "") return undefined;
  if (kind === "number") return Number(text);
  return kind === "json" ? (JSON.parse(text) as unknown) : text;
}
