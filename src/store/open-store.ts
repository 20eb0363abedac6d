import { EverstepError } from "../domain/errors.ts";
import { openLanceStore } from "./lancedb/lancedb-store.ts";
import type { Store } from "./store.ts";

/** Opens the store that a URL names: `lancedb:FOLDER`. */
export async function openStore(url: string): Promise<Store> {
  const folder = /^lancedb:(.+)$/.exec(url)?.[1];
  if (folder) return openLanceStore({ folder });
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_STORE=${url.replace(/:\/\/.*/, "://…")} names no store that this version has`,
    "use lancedb:FOLDER, for example lancedb:./data",
  );
}
