import { join } from "node:path";
import { postgresHome } from "./postgres-server.ts";
import { scratchFolder } from "./store/scratch-folder.ts";

/** The engine that the tests run on: the embedded one unless EVERSTEP_TEST_STORE is `postgres`. */
export const ENGINE = process.env["EVERSTEP_TEST_STORE"] === "postgres" ? "postgres" : "lancedb";

/** A folder for a program to run in, and the URL of its empty store. */
export type StoreHome = AsyncDisposable & { folder: string; store: string };

export async function storeHome(): Promise<StoreHome> {
  const scratch = await scratchFolder();
  if (ENGINE === "lancedb")
    return {
      folder: scratch.path,
      store: `lancedb:${join(scratch.path, "data")}`,
      [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
    };
  const { url, remove } = await postgresHome();
  return {
    folder: scratch.path,
    store: url,
    async [Symbol.asyncDispose]() {
      await remove();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
