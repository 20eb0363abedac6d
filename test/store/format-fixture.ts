import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { MISSING_VALUES } from "../../src/store/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { checksumOf, type Dump, dumpStore } from "./dump-store.ts";

/** A data folder written by an earlier version that was killed, and the rows that it contained. */
export type FormatFixture = { format: number; archive: string; tables: Record<string, FixtureTable> };
type FixtureTable = { checksum: string; rows: Dump[string] };

const FOLDER = fileURLToPath(new URL("./formats/", import.meta.url));

export function formatFixtures(): FormatFixture[] {
  const archives = readdirSync(FOLDER).filter((name) => name.endsWith(".tar.gz"));
  return archives.map((name) => {
    const base = name.replace(".tar.gz", "");
    const text = gunzipSync(readFileSync(join(FOLDER, `${base}.json.gz`))).toString();
    return {
      format: Number(/\d+/.exec(base)?.[0]),
      archive: join(FOLDER, name),
      tables: JSON.parse(text) as FormatFixture["tables"],
    };
  });
}

/** Returns the data folder. */
export function unpackFixture({ archive }: FormatFixture, into: string): string {
  execFileSync("tar", ["-xzf", archive, "-C", into]);
  return join(into, "data");
}

const MISSING: Record<string, Record<string, unknown>> = {
  sessions: { ...MISSING_VALUES.agent_state },
  steps: { ...MISSING_VALUES.agent_steps },
};

/** Throws unless every row of the fixture is unchanged; columns added since are null or have their default. */
export async function verifyFixture(store: Store, { tables }: FormatFixture): Promise<void> {
  const dump = await dumpStore(store);
  for (const [table, { checksum, rows }] of Object.entries(tables)) {
    const now = dump[table] ?? [];
    assert.equal(now.length, rows.length, `rows of ${table}`);
    const asThen = now.map((row, at) => {
      const fields = Object.keys(rows[at] ?? {});
      for (const name of Object.keys(row))
        if (!fields.includes(name)) assert.deepEqual(row[name], MISSING[table]?.[name] ?? null, `${table}.${name}`);
      return Object.fromEntries(fields.map((name) => [name, row[name]]));
    });
    assert.equal(checksumOf(asThen), checksum, `the checksum of ${table}`);
  }
}
