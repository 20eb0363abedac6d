import { z } from "zod";
import { isObject, type JsonObject, jsonObjectSchema } from "../../../domain/json.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured, oneLine, printable, table } from "../output.ts";

const monikersSchema = z.object({
  monikers: z.array(
    z.object({ name: z.string(), kind: z.string(), description: z.string(), params_schema: jsonObjectSchema }),
  ),
  failed: z.array(z.object({ error: z.string() })).optional(),
});
type Moniker = z.infer<typeof monikersSchema>["monikers"][number];

/** Lists the available monikers, or describes one. */
export async function monikers(
  client: ApiClient,
  name: string | undefined,
  { json }: { json?: boolean },
): Promise<void> {
  const answer = await client.get(monikersSchema, "/api/monikers");
  if (name !== undefined) return describe(client, one(client, answer.monikers, name), json);
  if (json) return console.log(JSON.stringify(answer));
  const rows = answer.monikers.map((moniker) => [
    moniker.name,
    moniker.kind,
    fieldsOf(moniker)
      .map(({ name: field, isRequired }) => (isRequired ? field : `${field}?`))
      .join(" "),
    oneLine(moniker.description, 80),
  ]);
  console.log(table(["MONIKER", "KIND", "PARAMS", "DESCRIPTION"], rows));
  for (const { error } of answer.failed ?? []) console.error(coloured("red", printable(error)));
}

function one(client: ApiClient, available: Moniker[], name: string): Moniker {
  const moniker = available.find((candidate) => candidate.name === name);
  if (!moniker) throw new CommandError(`no moniker is named ${name}; \`${client.hint("monikers")}\` lists them`);
  return moniker;
}

function describe(client: ApiClient, moniker: Moniker, json: boolean | undefined): void {
  if (json) return console.log(JSON.stringify(moniker));
  const { name, kind, description } = moniker;
  console.log(`${coloured("bold", printable(name))} (${kind}): ${printable(description)}`);
  const fields = fieldsOf(moniker);
  if (fields.length > 0)
    console.log(
      `\n${table(
        ["PARAM", "TYPE", "", "DESCRIPTION"],
        fields.map((field) => [field.name, field.type, field.isRequired ? "required" : "", field.description]),
      )}`,
    );
  const needed = fields.filter(({ isRequired }) => isRequired).flatMap((field) => ["--param", `${field.name}=…`]);
  console.log(`\nstart one with: ${client.hint("create", name, ...needed)}`);
}

function fieldsOf({ params_schema }: Moniker) {
  const { properties, required } = params_schema;
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) => {
    const { type, description } = isObject(schema) ? schema : ({} as JsonObject);
    return {
      name: printable(name),
      type: typeof type === "string" ? printable(type) : "any",
      isRequired: needed.has(name),
      description: typeof description === "string" ? oneLine(description, 80) : "",
    };
  });
}
