import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtimePromises } from "./runtime-promises.ts";

runtimePromises("lancedb", async () => {
  const folder = await mkdtemp(join(tmpdir(), "everstep-"));
  return { url: `lancedb:${folder}`, remove: () => rm(folder, { recursive: true }) };
});
