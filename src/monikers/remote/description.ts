import { createHash } from "node:crypto";
import { z } from "zod";
import { EverstepError } from "../../domain/errors.ts";
import { isObject, type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { sessionOptionsSchema } from "../../domain/session.ts";
import { monikerKindSchema, monikerNameSchema } from "../moniker.ts";
import { remoteMisbehaved } from "./remote-errors.ts";

const MOST_MONIKERS = 1000;

const descriptionSchema = z.object({
  name: monikerNameSchema,
  kind: monikerKindSchema.default("finite"),
  description: z.string().max(10_000).default(""),
  params_schema: jsonObjectSchema.default({}),
  first_step: z.string().min(1).max(500).optional(),
  options: sessionOptionsSchema.optional(),
  version: z.string().min(1).max(200).optional(),
});
type Described = z.infer<typeof descriptionSchema>;

/** A moniker as its worker describes it. */
export type Description = Omit<Described, "version"> & { version: string; params: z.ZodType };

/** A worker's monikers, and the entries that cannot be used. */
export type Descriptions = {
  monikers: Description[];
  failures: { moniker: string | null; error: EverstepError }[];
};

/** Defaults for fields that a worker leaves out. */
export type DescriptionDefaults = Partial<Pick<Described, "name" | "version" | "description">>;

/** Parses `{monikers: […]}`. An unusable entry does not affect the others. */
export function readDescriptions(remote: string, text: string, defaults: DescriptionDefaults = {}): Descriptions {
  const entries = entriesOf(text);
  if (!entries) throw remoteMisbehaved(remote, "did not describe its monikers as {monikers: […]}");
  if (entries.length > MOST_MONIKERS) throw remoteMisbehaved(remote, `has more than ${MOST_MONIKERS} monikers`);
  const descriptions: Descriptions = { monikers: [], failures: [] };
  for (const entry of entries) {
    const described = descriptionSchema.safeParse(isObject(entry) ? { ...defaults, ...entry } : entry);
    const reason = described.success ? null : firstIssue(described.error);
    const params = described.success ? readParamsSchema(described.data.params_schema) : null;
    if (described.success && params instanceof z.ZodType) {
      const version = described.data.version ?? hash(JSON.stringify(entry));
      descriptions.monikers.push({ ...described.data, version, params });
    } else {
      const moniker = isObject(entry) && typeof entry["name"] === "string" ? entry["name"].slice(0, 100) : null;
      const why = `${remote}: ${moniker ?? "a moniker"} cannot be used: ${reason ?? `params_schema: ${params as string}`}`;
      const error = new EverstepError("moniker_invalid", why, "docs/other-languages.md has an example");
      descriptions.failures.push({ moniker, error });
    }
  }
  return descriptions;
}

function entriesOf(text: string): unknown[] | null {
  try {
    const { monikers } = z.object({ monikers: z.array(z.unknown()) }).parse(JSON.parse(text));
    return monikers;
  } catch {
    return null;
  }
}

/** The schema as a validator, or the reason why it cannot be one. */
function readParamsSchema(schema: JsonObject): z.ZodType | string {
  try {
    return z.fromJSONSchema(withRequiredProperties(schema));
  } catch (error) {
    return (error as Error).message;
  }
}

/** zod only requires properties that are described. */
function withRequiredProperties(schema: JsonObject): JsonObject {
  const { required, properties = {} } = schema;
  if (!Array.isArray(required) || !isObject(properties)) return schema;
  const named = required.filter((name) => typeof name === "string").map((name) => [name, {}]);
  return { ...schema, properties: { ...Object.fromEntries(named), ...properties } };
}

const firstIssue = ({ issues: [issue] }: z.ZodError): string => `${issue?.path.join(".") || "it"}: ${issue?.message}`;

const VERSION_CHARACTERS = 12;
const hash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, VERSION_CHARACTERS);
