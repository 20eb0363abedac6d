import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { EverstepError } from "../../domain/errors.ts";
import { syncPath } from "./durable-files.ts";
import { AFTER_DAMAGE } from "./journal-file.ts";
import type { TableName } from "./tables.ts";

const SUFFIX = ".lance";
const LARGEST_VERSION = 2n ** 64n - 1n;

export const tableFolder = (folder: string, table: TableName): string => join(folder, `${table}${SUFFIX}`);

/**
 * Brings the tables on disk back to what the journal recorded as synced. What was written later may be torn by a loss
 * of power, and all of it is still in the journal, so it is dropped and moved again.
 */
export async function rewind(folder: string, archived: Map<TableName, { version: number }>): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.endsWith(SUFFIX) && !archived.has(basename(name, SUFFIX) as TableName)) throw foreign(folder, name);
  }
  for (const [table, { version }] of archived) {
    const path = tableFolder(folder, table);
    // Version 0 announces a table before it is made: nothing of it was ever trimmed from the journal.
    if (version === 0) await rm(path, { recursive: true, force: true });
    else await dropVersionsAfter(path, version);
  }
}

async function dropVersionsAfter(path: string, version: number): Promise<void> {
  const versions = join(path, "_versions");
  if (!existsSync(versions)) throw damaged(path, "its versions are missing");
  let dropped = false;
  for (const name of await readdir(versions)) {
    if (!name.endsWith(".manifest")) continue;
    if (versionOf(name) <= version) continue;
    await rm(join(versions, name));
    dropped = true;
  }
  if (!dropped) return;
  await rm(join(versions, "latest_version_hint.json"), { force: true });
  await syncPath(versions);
}

/** Manifests are named by version, or by its distance from the largest so that the newest is listed first. */
function versionOf(manifest: string): number {
  const number = BigInt(basename(manifest, ".manifest"));
  return Number(number > LARGEST_VERSION / 2n ? LARGEST_VERSION - number : number);
}

const foreign = (folder: string, name: string): EverstepError =>
  new EverstepError(
    "store_foreign",
    `${resolve(folder, name)} is not a table of the journal beside it`,
    "put back the journal.sqlite that belongs to it, or name another folder in EVERSTEP_STORE; nothing was changed",
  );

export const damaged = (path: string, why: unknown): EverstepError =>
  new EverstepError(
    "store_corrupt",
    `${resolve(path)} is damaged (${why instanceof Error ? why.message : String(why)})`,
    AFTER_DAMAGE,
    why,
  );
