import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type ScratchFolder = AsyncDisposable & { path: string };

/** A new empty folder that is deleted with its scope. */
export async function scratchFolder(): Promise<ScratchFolder> {
  const path = await mkdtemp(join(tmpdir(), "everstep-"));
  return { path, [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true, maxRetries: 3 }) };
}
