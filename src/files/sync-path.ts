import { open } from "node:fs/promises";

/** Makes a file's content, or a folder's entries, durable. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}
