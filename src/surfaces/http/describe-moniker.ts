import { z } from "zod";
import { paramsSchemaOf } from "../../actions/params-schema.ts";
import type { VersionedMoniker } from "../../monikers/catalog.ts";

export const monikerSchema = z.object({
  name: z.string(),
  kind: z.enum(["continuous", "finite", "reactive"]),
  description: z.string(),
  params_schema: z.record(z.string(), z.unknown()),
  version: z.string().nullable().describe("Changes whenever its code or prompts do."),
});
type MonikerDescription = z.infer<typeof monikerSchema>;

const descriptions = new WeakMap<VersionedMoniker, MonikerDescription>();

/** A moniker as clients see it, cached. */
export function describeMoniker(moniker: VersionedMoniker): MonikerDescription {
  const { name, kind, description, version } = moniker;
  const details = descriptions.get(moniker) ?? {
    name,
    kind,
    description,
    params_schema: paramsSchemaOf(moniker),
    version: version ?? null,
  };
  descriptions.set(moniker, details);
  return details;
}
