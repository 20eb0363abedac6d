import { z } from "zod";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured, table } from "../output.ts";

const reloadSchema = z.object({
  monikers: z.array(z.object({ name: z.string(), version: z.string(), change: z.string() })),
  failed: z.array(z.object({ file: z.string(), moniker: z.string().nullable(), error: z.string() })),
});

/** Makes the server reload what changed, and prints the result. */
export async function reload(client: ApiClient, { json }: { json?: boolean }): Promise<void> {
  const report = await client.post(reloadSchema, "/api/monikers/reload", {}, { timeout_ms: 0 });
  const { monikers, failed } = report;
  if (json) console.log(JSON.stringify(report));
  else if (monikers.length > 0)
    console.log(
      table(
        ["MONIKER", "VERSION", "CHANGE"],
        monikers.map(({ name, version, change }) => [name, version, change]),
      ),
    );
  else if (failed.length === 0) console.log("nothing to load: the server's EVERSTEP_MONIKERS contains no monikers");
  if (failed.length === 0) return;
  const lines = failed.map(({ moniker, error }) =>
    moniker === null ? error : `${error} (${coloured("bold", moniker)} keeps its last good version)`,
  );
  throw new CommandError(lines.join("\n"));
}
