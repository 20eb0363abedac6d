import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreHome } from "./runtime-fixture.ts";

/** A new folder for the embedded store. */
export async function embeddedHome(): Promise<StoreHome> {
  const folder = await mkdtemp(join(tmpdir(), "everstep-"));
  return { url: `lancedb:${folder}`, remove: () => rm(folder, { recursive: true, force: true }) };
}
