import { EverstepError } from "../domain/errors.ts";
import { redactUrl } from "../domain/redact.ts";
import { ThreadChannel } from "./embedded/thread-channel.ts";
import type { Store } from "./store.ts";

export type StoreOptions = {
  /** Connections that reads and claims share, on PostgreSQL. 4 by default. */
  pool_size?: number;
  /** Told, in words for a person, what takes long while an older data folder is upgraded. */
  notice?: (text: string) => void;
  /** Where it is given, a database that is out of reach is waited for, and this is told why, again and again. */
  waiting?: (why: EverstepError) => void;
};

/** Opens the store that a URL names: `lancedb:FOLDER` or `postgres://…`. Only the engine that is asked for is loaded. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const folder = /^lancedb:(.+)$/.exec(url)?.[1];
  if (folder) {
    // Begun before anything is awaited: its thread loads LanceDB while this one loads the rest of the program.
    const channel = new ThreadChannel(folder, {}, options.notice);
    return (await import("./embedded/embedded-store.ts")).openOver(channel);
  }
  if (isShared(url)) {
    const { notice: _, waiting, ...tuning } = options;
    const { openPostgresStore } = await import("./postgres/open-postgres-store.ts");
    return openPostgresStore({ url, tuning, ...(waiting ? { waiting } : {}) });
  }
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_STORE=${describeStore(url)} names no store that this version has`,
    "use lancedb:FOLDER, for example lancedb:./data, or postgres://USER:PASSWORD@HOST/DATABASE",
  );
}

/** Whether several processes can have the store open at once. */
export const isShared = (url: string): boolean => /^postgres(?:ql)?:\/\/./.test(url);

/** How a store is named to people. What is not the URL of a store at all may have a password anywhere behind its first colon. */
export function describeStore(url: string): string {
  if (url.startsWith("lancedb:")) return url;
  return isShared(url) ? redactUrl(url) : url.replace(/[:@].*$/s, ":…");
}
